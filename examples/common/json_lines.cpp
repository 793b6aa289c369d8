#include "json_lines.h"

#include <sstream>

#include <braid/core/error.h>

#include "read_file.h"

namespace braid::examples {

JSONLines::JSONLines(const std::filesystem::path& path) : path_(path), file_(path, std::ios::app) {
  check<FileError>(file_.good(), "{} cannot be written", path.string());
}

void JSONLines::append(const nlohmann::ordered_json& line) { append_lines(line.dump() + "\n"); }

void JSONLines::append_lines(const std::string& lines) {
  file_ << lines << std::flush;
  check<FileError>(file_.good(), "{} cannot be written", path_.string());
}

std::string json_lines_until(const std::filesystem::path& path, std::int64_t step) {
  std::istringstream file(read_file(path));
  std::string kept;
  std::int64_t number = 0;
  for (std::string text; std::getline(file, text) && !file.eof();) {
    ++number;
    const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    check<FileError>(line.is_object() && line.contains("step") && line["step"].is_number_integer(),
                     "{}: line {} must be an object with an integer step", path.string(), number);
    if (line["step"] <= step) kept += text + "\n";
  }
  return kept;
}

}  // namespace braid::examples
