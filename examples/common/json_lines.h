#pragma once
#include <filesystem>
#include <fstream>
#include <vector>

#include <nlohmann/json.hpp>

namespace braid::examples {

/// A file with one JSON object a line; each line is whole on disk before the next is written.
class JsonLines {
 public:
  /// Continues the file with the lines that it holds, or starts it. Throws FileError when it cannot be written.
  explicit JsonLines(const std::filesystem::path& path);

  void append(const nlohmann::ordered_json& line);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

/// The objects of a file; a last line that a killed program left unfinished is skipped. Empty when there is no file.
std::vector<nlohmann::ordered_json> read_json_lines(const std::filesystem::path& path);

/// Replaces the file by these lines, at once.
void write_json_lines(const std::filesystem::path& path, const std::vector<nlohmann::ordered_json>& lines);

}  // namespace braid::examples
