#include "run_folder.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <braid/core/error.h>
#include <braid/core/files/atomic_file.h>
#include <braid/core/platform/files.h>

#include "../platform/files.h"
#include "run_main.h"

namespace braid::apps {
namespace {

/// Returns 0, or the errno of locking the file: EWOULDBLOCK when another process still holds it after a moment.
int lock(int file) {
  for (int tries = 0; tries < 100; ++tries) {
    if (platform::try_to_lock(file) == 0) return 0;
    if (errno != EWOULDBLOCK && errno != EINTR) return errno;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return EWOULDBLOCK;
}

}  // namespace

namespace fs = std::filesystem;

void check_results_folder(const fs::path& folder) {
  check_utf8("--out", folder.string());
  for (const fs::path& name : folder)
    check<FileError>(name.string().size() <= platform::kLongestName, "--out: '{}..' is longer than {} bytes",
                     name.string().substr(0, 20), platform::kLongestName);
  fs::path there = fs::absolute(folder);  // the part of the path that exists
  std::error_code error;
  while (fs::symlink_status(there, error).type() == fs::file_type::not_found) there = there.parent_path();
  const bool is_folder = !error && fs::is_directory(there, error);
  check<FileError>(is_folder, "--out: {} is not a folder: {}", there.string(),
                   error ? error.message() : "it is something else");
  check<FileError>(platform::may_write_into(there), "--out: {} cannot be written to", there.string());
}

void make_results_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check<FileError>(!error, "--out: {} cannot be made: {}", folder.string(), error.message());
}

FolderLock::File::~File() {
  if (locked) platform::remove(path);
  platform::close(number);
}

FolderLock::FolderLock(const fs::path& folder) : file_{folder / ".lock"} {
  while (!file_.locked) {  // until it is not the file of another process that removed it meanwhile
    platform::close(file_.number);
    file_.number = platform::open_to_lock(file_.path);
    const int error = file_.number < 0 ? errno : lock(file_.number);
    check<FileError>(error != EWOULDBLOCK, "--out: {} is in use by another process", folder.string());
    check<FileError>(error == 0, "--out: {} cannot be locked: {}", folder.string(), std::strerror(error));
    file_.locked = platform::is_at(file_.number, file_.path);
  }
  remove_temporary_files(folder);
}

}  // namespace braid::apps
