#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

namespace braid::examples {

/// A file with one JSON object a line; the system has each line before the next is written. Nothing is synced: a power
/// cut may take lines.
class JSONLines {
 public:
  /// Continues the file with the lines that it holds, or starts it. Throws FileError when it cannot be written.
  explicit JSONLines(const std::filesystem::path& path);

  void append(const nlohmann::ordered_json& line);
  /// Whole lines, or none.
  void append_lines(const std::string& lines);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

/// The lines of a file whose "step" is not past `step`; those past it belong to steps that will be taken again. A last
/// line that a killed program left unfinished goes too. Throws FileError when the file cannot be read, and naming the
/// line that is no object with an integer step.
std::string json_lines_until(const std::filesystem::path& path, std::int64_t step);

}  // namespace braid::examples
