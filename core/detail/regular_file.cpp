#include <braid/core/detail/regular_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <braid/core/error.h>

namespace braid::detail {

RegularFile::RegularFile(std::string where, const std::filesystem::path& path)
    : where_(std::move(where)), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  check<FileError>(file_ >= 0, "{}: cannot be opened: {}", where_, std::strerror(errno));
  struct stat status {};
  if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file_);
    throw FileError(where_ + ": must be a regular file but is something else");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

RegularFile::~RegularFile() { ::close(file_); }

void RegularFile::read(void* out, std::uint64_t bytes) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::read(file_, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    check<FileError>(got >= 0, "{}: cannot be read: {}", where_, std::strerror(errno));
    check<FileError>(got > 0, "{}: expected {} more bytes but the file ends", where_, bytes);
    to += got;
    bytes -= static_cast<std::uint64_t>(got);
  }
}

}  // namespace braid::detail
