#include "files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::platform {

namespace fs = std::filesystem;

int open_to_lock(const fs::path& path) { return ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666); }

int try_to_lock(int file) { return flock(file, LOCK_EX | LOCK_NB); }

bool is_at(int file, const fs::path& path) {
  struct stat opened {};
  struct stat there {};
  return fstat(file, &opened) == 0 && stat(path.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

bool may_write_into(const fs::path& folder) { return access(folder.c_str(), W_OK | X_OK) == 0; }

}  // namespace braid::platform
