#include "folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <fstream>
#include <iterator>
#include <ostream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <braid/core/atomic_file.h>
#include <braid/core/error.h>

#include "../common/run_info.h"

namespace braid::stability {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The descriptor stays open, here and in children: when all have ended, the lock is gone.
void lock(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  check<FileError>(descriptor >= 0, "--out: {} cannot be opened", folder.string());
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return;
  fmt::print("waiting for another program that writes to {}\n", folder.string());
  flock(descriptor, LOCK_EX);
}

}  // namespace

Folder open_folder(const fs::path& path, const Config& config) {
  const Folder folder{path};
  const bool there = fs::exists(folder.config());
  check_value(there || !fs::exists(path) || (fs::is_directory(path) && fs::is_empty(path)),
              "--out: {} holds other files; name another folder", path.string());
  check_value(!there || content(folder.config()) == config.text,
              "--out: {} was made with another configuration; name another folder", path.string());
  examples::make_results_folder(folder.runs());
  lock(path);
  write_file_atomically(folder.config(), [&](std::ostream& file) { file << config.text; });
  return folder;
}

void add_session(const Folder& folder, const std::string& command) {
  Json info = Json::parse(content(folder.info()), nullptr, /*allow_exceptions=*/false);
  if (!info.is_object()) info = {{"sessions", Json::array()}};
  info["sessions"].push_back({{"command", command},
                              {"started", examples::time_stamp()},
                              {"git_commit", examples::git_commit()},
                              {"machine", examples::machine_info()}});
  write_file_atomically(folder.info(), [&](std::ostream& file) { file << info.dump(2) << "\n"; });
}

}  // namespace braid::stability
