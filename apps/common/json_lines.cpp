#include "json_lines.h"

#include <sstream>

#include <braid/core/error.h>
#include <braid/core/files/budget.h>

#include "read_file.h"

namespace braid::apps {

namespace fs = std::filesystem;

nlohmann::json parse_json(const std::string& where, std::string_view text) {
  check_nesting(where, text);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

JSONLines::JSONLines(const fs::path& path) : file_(path.string(), path, OpenFor::appending, "cannot be written") {}

void JSONLines::append(const nlohmann::ordered_json& line) { append_lines(line.dump() + "\n"); }

void JSONLines::append_lines(const std::string& lines) {
  file_.require(file_.write(lines.data(), lines.size()), "cannot be written");
}

void sync_json_lines(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".jsonl" || entry.path().filename().string().find("tfevents") != std::string::npos)
      OutputFile(entry.path().string(), entry.path(), OpenFor::syncing, "cannot be opened").sync("fsync failed");
}

KeptLines json_lines_until(const fs::path& path, std::int64_t step) {
  std::istringstream file(read_file(path));
  KeptLines kept;
  std::int64_t number = 0;
  for (std::string text; std::getline(file, text) && !file.eof();) {
    ++number;
    const auto line = parse_json(fmt::format("{}: line {}", path.string(), number), text);
    const auto at = integer_of(line.is_object() ? line.value("step", nlohmann::json()) : nlohmann::json());
    check<FileError>(at.has_value(), "{}: line {} must be an object with an integer step", path.string(), number);
    if (at.value_or(0) > step) continue;
    kept.text += text + "\n";
    kept.last_step = at.value_or(0);
  }
  return kept;
}

}  // namespace braid::apps
