#include <braid/core/files/file_system.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace braid {
namespace {

std::atomic<FileSystem*>& in_use() {
  static FileSystem system;
  static std::atomic<FileSystem*> instance = &system;
  return instance;
}

/// Repeats a call until no signal interrupts it.
auto uninterrupted(auto call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

int FileSystem::open(const char* path, int flags) { return ::open(path, flags, 0666); }
ssize_t FileSystem::read(int file, void* out, std::size_t bytes) { return ::read(file, out, bytes); }
ssize_t FileSystem::write(int file, const void* data, std::size_t bytes) { return ::write(file, data, bytes); }
int FileSystem::fsync(int file) { return ::fsync(file); }
int FileSystem::close(int file) { return ::close(file); }
int FileSystem::rename(const char* from, const char* to) { return std::rename(from, to); }
int FileSystem::unlink(const char* path) { return ::unlink(path); }

FileSystem& file_system() { return *in_use(); }

WithFileSystem::WithFileSystem(FileSystem& files) : before_(in_use().exchange(&files)) {}
WithFileSystem::~WithFileSystem() { in_use() = before_; }

RegularFile::RegularFile(std::string where, const std::filesystem::path& path)
    : where_(std::move(where)), file_(file_system().open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  check<UnreadableFile>(file_ >= 0, "{}: cannot be opened: {}", where_, std::strerror(errno));
  struct stat status {};
  if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    file_system().close(file_);
    throw UnreadableFile(where_ + ": must be a regular file but is something else");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

RegularFile::~RegularFile() { file_system().close(file_); }

void RegularFile::read(void* out, std::uint64_t bytes) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = file_system().read(file_, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    check<UnreadableFile>(got >= 0, "{}: cannot be read: {}", where_, std::strerror(errno));
    check<FileError>(got > 0, "{}: expected {} more bytes but the file ends", where_, bytes);
    to += got;
    bytes -= static_cast<std::uint64_t>(got);
  }
}

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
