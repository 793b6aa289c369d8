#include <braid/core/files/regular_file.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <braid/core/files/file_system.h>

namespace braid {

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

}  // namespace braid
