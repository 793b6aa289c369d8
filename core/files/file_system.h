#pragma once
#include <sys/types.h>

#include <cstddef>

namespace braid {

/// The operating system's calls by which braid reads and writes files, each as POSIX defines it: -1 and errno for an
/// error. A test derives from it to let a call fail.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const char* path, int flags);                         ///< creates with mode 0666 less the umask
  virtual ssize_t read(int file, void* out, std::size_t bytes);          ///< read(2)
  virtual ssize_t write(int file, const void* data, std::size_t bytes);  ///< write(2)
  virtual int fsync(int file);                                           ///< fsync(2)
  virtual int close(int file);                                           ///< close(2)
  virtual int rename(const char* from, const char* to);                  ///< rename(2)
  virtual int unlink(const char* path);                                  ///< unlink(2)
};

/// The calls in use: the operating system's, unless a WithFileSystem is alive.
FileSystem& file_system();

/// While it is alive, all threads use `files` instead of the operating system's calls.
class WithFileSystem {
 public:
  explicit WithFileSystem(FileSystem& files);
  ~WithFileSystem();
  WithFileSystem(const WithFileSystem&) = delete;
  WithFileSystem& operator=(const WithFileSystem&) = delete;

 private:
  FileSystem* before_;
};

}  // namespace braid
