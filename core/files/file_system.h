#pragma once
#include <sys/types.h>

#include <cstddef>

namespace braid::detail {

/// The calls to the operating system by which braid reads and writes files: all of them, so that a test may let any one
/// fail. They mean what POSIX says: -1 and errno for an error.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const char* path, int flags);  // what it creates has mode 0666 less the umask
  virtual ssize_t read(int file, void* out, std::size_t bytes);
  virtual ssize_t write(int file, const void* data, std::size_t bytes);
  virtual int fsync(int file);
  virtual int close(int file);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
};

/// The one in use: the system's own, unless a test has put another in its place.
FileSystem& file_system();

/// Puts `files` in the place of the system's calls, for all threads, while it is alive.
class WithFileSystem {
 public:
  explicit WithFileSystem(FileSystem& files);
  ~WithFileSystem();
  WithFileSystem(const WithFileSystem&) = delete;
  WithFileSystem& operator=(const WithFileSystem&) = delete;

 private:
  FileSystem* before_;
};

}  // namespace braid::detail
