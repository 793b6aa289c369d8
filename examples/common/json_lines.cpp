#include "json_lines.h"

#include <string>

#include <braid/core/atomic_file.h>
#include <braid/core/error.h>

namespace braid::examples {

JsonLines::JsonLines(const std::filesystem::path& path) : path_(path), file_(path, std::ios::app) {
  check<FileError>(file_.good(), "{} cannot be written", path.string());
}

void JsonLines::append(const nlohmann::ordered_json& line) {
  file_ << line.dump() << std::endl;
  check<FileError>(file_.good(), "{} cannot be written", path_.string());
}

std::vector<nlohmann::ordered_json> read_json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    auto line = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!line.is_discarded()) lines.push_back(std::move(line));
  }
  return lines;
}

void write_json_lines(const std::filesystem::path& path, const std::vector<nlohmann::ordered_json>& lines) {
  write_file_atomically(path, [&](std::ostream& file) {
    for (const auto& line : lines) file << line.dump() << "\n";
  });
}

}  // namespace braid::examples
