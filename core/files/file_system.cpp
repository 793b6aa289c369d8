#include <braid/core/files/file_system.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <braid/core/platform/files.h>

namespace braid {
namespace {

namespace fs = std::filesystem;
using platform::uninterrupted;

std::atomic<FileSystem*>& in_use() {
  static FileSystem system;
  static std::atomic<FileSystem*> instance = &system;
  return instance;
}

}  // namespace

int FileSystem::open(const fs::path& path, OpenFor use) {
  switch (use) {
    case OpenFor::reading: return platform::open_to_read(path);
    case OpenFor::syncing: return platform::open_to_sync(path);
    case OpenFor::appending: return platform::open_to_append(path);
    default: return platform::create(path);
  }
}

std::ptrdiff_t FileSystem::read_at(std::uint64_t position, int file, void* out, std::size_t bytes) {
  return platform::read_at(position, file, out, bytes);
}
std::ptrdiff_t FileSystem::write(int file, const void* data, std::size_t bytes) {
  return platform::write(file, data, bytes);
}
int FileSystem::fsync(int file) { return platform::sync(file); }
int FileSystem::close(int file) { return platform::close(file); }
int FileSystem::rename(const fs::path& from, const fs::path& to) { return platform::rename(from, to); }
int FileSystem::unlink(const fs::path& path) { return platform::remove(path); }

FileSystem& file_system() { return *in_use(); }

WithFileSystem::WithFileSystem(FileSystem& files) : before_(in_use().exchange(&files)) {}
WithFileSystem::~WithFileSystem() { in_use() = before_; }

RegularFile::RegularFile(std::string where, const fs::path& path)
    : where_(std::move(where)), file_(uninterrupted([&] { return file_system().open(path, OpenFor::reading); })) {
  check<UnreadableFile>(file_ >= 0, "{}: cannot be opened: {}", where_, std::strerror(errno));
  const std::optional<platform::FileState> state = platform::state_of_regular(file_);
  if (!state) {
    file_system().close(file_);
    throw UnreadableFile(where_ + ": must be a regular file but is something else");
  }
  size_ = state->bytes;
  written_ = state->written;
}

RegularFile::~RegularFile() { file_system().close(file_); }

void RegularFile::read(void* out, std::uint64_t bytes) {
  read_at(position_, out, bytes);
  position_ += bytes;
}

void RegularFile::read_at(std::uint64_t position, void* out, std::uint64_t bytes) const {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const std::ptrdiff_t got = uninterrupted([&] { return file_system().read_at(position, file_, to, bytes); });
    check<UnreadableFile>(got >= 0, "{}: cannot be read: {}", where_, std::strerror(errno));
    check<FileError>(got > 0, "{}: expected {} more bytes but the file ends", where_, bytes);
    to += got;
    position += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
}

std::string RegularFile::contents() const {
  std::string bytes(size_, '\0');
  read_at(0, bytes.data(), size_);
  return bytes;
}

void RegularFile::check_unchanged() const {
  const std::optional<platform::FileState> now = platform::state_of_regular(file_);
  check<FileError>(now && now->bytes == size_ && now->written == written_,
                   "{}: has been written to since it was opened", where_);
}

OutputFile::OutputFile(std::string where, const fs::path& path, OpenFor use, const char* failure)
    : where_(std::move(where)), file_(uninterrupted([&] { return file_system().open(path, use); })) {
  require(file_ >= 0, failure);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) file_system().close(file_);
}

bool OutputFile::write(const char* data, std::size_t bytes) const {
  while (bytes > 0) {
    const std::ptrdiff_t written = uninterrupted([&] { return file_system().write(file_, data, bytes); });
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
