#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <braid/core/files/file_system.h>

namespace braid::apps {

/// Parses a text of a file; a discarded value if it is no JSON. Throws FileError that starts with `where` as
/// check_nesting() does.
nlohmann::json parse_json(const std::string& where, std::string_view text);

/// A JSON integer; nullopt for other values and for one that 64 bits with a sign do not hold.
inline std::optional<std::int64_t> integer_of(const nlohmann::json& value) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || std::in_range<std::int64_t>(value.get<std::uint64_t>()));
  return fits ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

/// A file with one JSON object per line. Each line is passed to the system at once, but not synced to the disk before
/// sync_json_lines: a power cut may lose lines.
class JSONLines {
 public:
  /// Opens the file to append to it, or creates it. Throws FileError when it cannot be written.
  explicit JSONLines(const std::filesystem::path& path);

  void append(const nlohmann::ordered_json& line);
  /// Appends text, which must be whole lines or empty. Throws FileError when it cannot be written.
  void append_lines(const std::string& lines);

 private:
  OutputFile file_;
};

/// Syncs all JSONLines and TensorBoard files of a folder to the disk. Throws FileError when one cannot be synced.
void sync_json_lines(const std::filesystem::path& folder);

/// Lines of a file, and the "step" of the last one, or 0 if there are no lines.
struct KeptLines {
  std::string text;
  std::int64_t last_step = 0;
};

/// The lines of a file whose "step" is at most `step`; later steps will be repeated. Also drops an incomplete last
/// line, which a killed program leaves. Throws FileError when the file cannot be read, and when a line is not an object
/// with an integer step; the message has its number.
KeptLines json_lines_until(const std::filesystem::path& path, std::int64_t step);

}  // namespace braid::apps
