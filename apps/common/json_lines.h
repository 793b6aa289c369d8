#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <braid/core/files/file_system.h>

namespace braid::examples {

/// A file with one JSON object a line; the system has each line before the next is written. Nothing is synced
/// before sync_json_lines: a power cut may take lines.
class JSONLines {
 public:
  /// Continues the file with the lines that it holds, or starts it. Throws FileError when it cannot be written.
  explicit JSONLines(const std::filesystem::path& path);

  void append(const nlohmann::ordered_json& line);
  /// Whole lines, or none.
  void append_lines(const std::string& lines);

 private:
  OutputFile file_;
};

/// Waits until the disk has all JSONLines files of a folder, and TensorBoard's. Throws FileError.
void sync_json_lines(const std::filesystem::path& folder);

/// Lines of a file, and the "step" of the last one, 0 when there is none.
struct KeptLines {
  std::string text;
  std::int64_t last_step = 0;
};

/// The lines of a file whose "step" is not past `step`; those past it belong to steps that will be taken again. A last
/// line that a killed program left unfinished goes too. Throws FileError when the file cannot be read, and naming the
/// line that is no object with an integer step.
KeptLines json_lines_until(const std::filesystem::path& path, std::int64_t step);

}  // namespace braid::examples
