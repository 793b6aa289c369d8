#include "folder.h"

#include <algorithm>
#include <ostream>

#include <nlohmann/json.hpp>

#include <braid/core/error.h>
#include <braid/core/files/atomic_file.h>

#include "../common/json_lines.h"
#include "../common/read_file.h"
#include "../common/run_folder.h"
#include "../common/run_info.h"

namespace braid::stability {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Whether the folder is empty but for files that a start that was killed leaves.
bool is_unused(const Folder& folder) {
  return std::ranges::all_of(fs::directory_iterator(folder.path), [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return name == ".lock" || name.starts_with("config.toml.") ||
           (entry.path() == folder.runs() && fs::is_empty(entry));
  });
}

}  // namespace

Folder open_folder(const fs::path& path, const Config& config) {
  const Folder folder{path};
  const bool there = fs::exists(folder.config());
  check_value(there || !fs::exists(path) || (fs::is_directory(path) && is_unused(folder)),
              "--out: {} holds other files; name another folder", path.string());
  check_value(!there || apps::read_file(folder.config()) == config.text,
              "--out: {} was made with another configuration; name another folder", path.string());
  apps::make_results_folder(folder.runs());
  return folder;
}

void write_config(const Folder& folder, const Config& config) {
  remove_temporary_files(folder.runs());
  write_file_atomically(folder.config(), [&](std::ostream& file) { file << config.text; });
}

void add_session(const Folder& folder, const std::string& command) {
  const std::string before = fs::exists(folder.info()) ? apps::read_file(folder.info()) : "";
  Json info;
  try {
    info = apps::parse_json(folder.info().string(), before);
  } catch (const FileError&) {  // starts anew, as what is no JSON does
  }
  if (!info.is_object() || !info["sessions"].is_array()) info = {{"sessions", Json::array()}};
  info["sessions"].push_back({{"command", command},
                              {"started", apps::time_stamp()},
                              {"git_commit", apps::git_commit()},
                              {"machine", apps::machine_info()}});
  write_file_atomically(folder.info(), [&](std::ostream& file) { file << info.dump(2) << "\n"; });
}

}  // namespace braid::stability
