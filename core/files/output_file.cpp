#include <braid/core/files/output_file.h>

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <braid/core/error.h>
#include <braid/core/files/file_system.h>

namespace braid {
namespace {

/// Repeats a call until no signal interrupts it.
auto uninterrupted(auto call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

OutputFile::OutputFile(std::string where, const char* name, int flags, const char* failure)
    : where_(std::move(where)), file_(uninterrupted([&] { return file_system().open(name, flags | O_CLOEXEC); })) {
  require(file_ >= 0, failure);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) file_system().close(file_);
}

bool OutputFile::write(const char* data, std::size_t bytes) const {
  while (bytes > 0) {
    const ssize_t written = uninterrupted([&] { return file_system().write(file_, data, bytes); });
    if (written == 0) errno = EIO;  // retrying might never end
    if (written <= 0) return false;
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

void OutputFile::sync(const char* failure) const {
  require(uninterrupted([&] { return file_system().fsync(file_); }) == 0 || errno == EINVAL, failure);
}

void OutputFile::close() {
  const int file = std::exchange(file_, -1);  // closed even if that fails
  require(file_system().close(file) == 0, "cannot be closed");
}

// Allocates only on error: work that is done must not fail for lack of memory.
void OutputFile::require(bool ok, const char* failure) const {
  const int error = errno;
  check<FileError>(ok, "{}: {}: {}", where_, failure, std::strerror(error));
}

}  // namespace braid
