#include <braid/core/atomic_file.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

#include <braid/core/error.h>

namespace braid {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw FileError(fmt::format("write_file_atomically: {}: {}: {}", path.string(), what, std::strerror(errno)));
}

void write_stream(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) fail(path, "cannot be created");
  write(out);
  out.close();
  if (!out) fail(path, "cannot be written");
}

/// Waits until the disk holds a file or folder. Some file systems cannot sync folders (EINVAL); nothing is to be done.
void sync(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path, "cannot be opened for fsync");
  const int error = ::fsync(file) == 0 || errno == EINVAL ? 0 : errno;
  ::close(file);
  errno = error;
  if (error != 0) fail(path, "fsync failed");
}

}  // namespace

void write_file_atomically(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  // Renaming over a device would replace it.
  check<FileError>(!fs::exists(status) || fs::is_regular_file(status),
                   "write_file_atomically: {}: must be a regular file but is something else", path.string());
  const fs::path temporary = path.string() + ".tmp";
  try {
    write_stream(temporary, write);
    sync(temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "cannot be replaced");
  } catch (...) {
    fs::remove(temporary, ignored);
    throw;
  }
  sync(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

}  // namespace braid
