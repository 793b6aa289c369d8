#include "json_lines.h"

#include <braid/core/atomic_file.h>
#include <braid/core/error.h>

namespace braid::examples {

JSONLines::JSONLines(const std::filesystem::path& path) : path_(path), file_(path, std::ios::app) {
  check<FileError>(file_.good(), "{} cannot be written", path.string());
}

void JSONLines::append(const nlohmann::ordered_json& line) { append_lines(line.dump() + "\n"); }

void JSONLines::append_lines(const std::string& lines) {
  file_ << lines << std::flush;
  check<FileError>(file_.good(), "{} cannot be written", path_.string());
}

void rewind_json_lines(const std::filesystem::path& path, std::int64_t step) {
  if (!std::filesystem::exists(path)) return;
  std::string kept;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (line.is_object() && line.value("step", std::int64_t{0}) <= step) kept += text + "\n";
  }
  write_file_atomically(path, [&](std::ostream& out) { out << kept; });
}

}  // namespace braid::examples
