#include "folder.h"

#include <map>
#include <new>

#include <fmt/format.h>

#include <braid/core/files/atomic_file.h>

#include "../common/events.h"
#include "../common/json_lines.h"
#include "../common/progress.h"
#include "saved_run.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;

void set_aside(const fs::path& path, const std::string& why) {
  fs::path aside = path.string() + ".damaged";
  for (int number = 2; fs::exists(aside); ++number) aside = fmt::format("{}.damaged-{}", path.string(), number);
  move_file(path, aside);
  apps::say("{}; it is {} now, and the run goes on without it\n", why, aside.filename().string());
}

}  // namespace

void rewind(const Folder& folder, std::int64_t step) {
  std::map<fs::path, apps::KeptLines> kept;
  std::map<fs::path, std::string> damaged;
  const auto read = [&](const fs::path& path, const auto& lines_until) {
    try {
      if (fs::exists(fs::symlink_status(path))) kept[path] = lines_until(path, step);
    } catch (const FileError& error) {
      damaged[path] = error.what();
    } catch (const std::bad_alloc&) {
      damaged[path] = fmt::format("{}: is larger than the memory", path.string());
    }
  };
  for (const fs::path& path :
       {folder.metrics(), folder.ledger(), folder.telemetry(), folder.gradients(), folder.samples()})
    read(path, apps::json_lines_until);
  read(folder.events(),
       [](const fs::path& path, std::int64_t until) { return apps::KeptLines{apps::events_until(path, until)}; });
  for (const auto& [path, why] : damaged) set_aside(path, why);
  for (const auto& [path, lines] : kept) write_file_atomically(path, [&](std::ostream& file) { file << lines.text; });
  if (damaged.contains(folder.metrics())) return;
  if (const std::int64_t last = kept[folder.metrics()].last_step; step >= 0 && last != step)
    apps::say("{}: lines are missing: the last one is of step {} but the checkpoint is of step {}\n",
              folder.metrics().string(), last, step);
}

void append_sample(const Folder& folder, std::int64_t step, const std::string& text) {
  const fs::path path = folder.samples();
  if (fs::exists(path)) {
    const apps::KeptLines earlier = apps::json_lines_until(path, step - 1);
    write_file_atomically(path, [&](std::ostream& file) { file << earlier.text; });
  }
  apps::JSONLines(path).append({{"step", step}, {"text", text}});
}

}  // namespace braid::train_lm
