#include <braid/core/platform/files.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

namespace braid::platform {
namespace {

namespace fs = std::filesystem;

int opened(const fs::path& path, int flags) { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); }

}  // namespace

int open_to_read(const fs::path& path) { return opened(path, O_RDONLY | O_NONBLOCK | O_NOCTTY); }
int open_to_sync(const fs::path& path) { return open_to_read(path); }  // other systems need other rights
int open_to_append(const fs::path& path) { return opened(path, O_WRONLY | O_CREAT | O_APPEND); }
int create(const fs::path& path) { return opened(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW); }

std::ptrdiff_t read_at(std::uint64_t position, int file, void* out, std::size_t bytes) {
  return ::pread(file, out, bytes, static_cast<off_t>(position));
}
std::ptrdiff_t write(int file, const void* data, std::size_t bytes) { return ::write(file, data, bytes); }

int sync(int file) {
#ifdef __APPLE__  // its fsync leaves the data in the disk's cache; some file systems have no other
  if (fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
  return ::fsync(file);
}

int close(int file) { return ::close(file); }
int rename(const fs::path& from, const fs::path& to) { return std::rename(from.c_str(), to.c_str()); }
int remove(const fs::path& path) { return ::unlink(path.c_str()); }

std::optional<FileState> state_of_regular(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return {};
#ifdef __APPLE__
  const timespec written = status.st_mtimespec;
#else
  const timespec written = status.st_mtim;
#endif
  return FileState{static_cast<std::uint64_t>(status.st_size),
                   written.tv_sec * std::int64_t{1'000'000'000} + written.tv_nsec};
}

int for_each_name(const fs::path& folder, const std::function<void(const char* name)>& use) {
  const auto close = [](DIR* listing) { closedir(listing); };
  const std::unique_ptr<DIR, decltype(close)> listing(opendir(folder.c_str()));
  if (listing == nullptr) return -1;
  for (const dirent* entry = nullptr; errno = 0, (entry = readdir(listing.get())) != nullptr;) use(entry->d_name);
  return errno == 0 ? 0 : -1;
}

}  // namespace braid::platform
