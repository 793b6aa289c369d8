#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <braid/core/error.h>

namespace braid {

/// What a file is opened for.
enum class OpenFor {
  reading,    ///< without waiting, if it is a FIFO
  syncing,    ///< a file or folder
  appending,  ///< a file, which is created if it is not there
  creating,   ///< a file that must not be there, not even as a link
};

/// The operating system's calls by which braid reads and writes files, each as POSIX defines it: -1 and errno for an
/// error. A test derives from it to let a call fail.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::filesystem::path& path, OpenFor use);  ///< creates with mode 0666 less the umask
  virtual std::ptrdiff_t read_at(std::uint64_t position, int file, void* out, std::size_t bytes);  ///< pread(2)
  virtual std::ptrdiff_t write(int file, const void* data, std::size_t bytes);                     ///< write(2)
  virtual int fsync(int file);                                                                     ///< fsync(2)
  virtual int close(int file);                                                                     ///< close(2)
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);          ///< rename(2)
  virtual int unlink(const std::filesystem::path& path);                                           ///< unlink(2)
};

/// The calls in use: the operating system's, unless a WithFileSystem is alive.
FileSystem& file_system();

/// While it is alive, all threads use `files` instead of the operating system's calls.
class WithFileSystem {
 public:
  explicit WithFileSystem(FileSystem& files);  ///< `files` has to outlive it
  ~WithFileSystem();
  WithFileSystem(const WithFileSystem&) = delete;
  WithFileSystem& operator=(const WithFileSystem&) = delete;

 private:
  FileSystem* before_;
};

/// A file cannot be opened or read, or is not a regular file. Its contents are unknown: do not report it as damaged.
struct UnreadableFile : FileError {
  using FileError::FileError;
};

/// A regular file that is open to be read. FIFOs, devices and folders are refused without waiting for them.
class RegularFile {
 public:
  /// Opens a file. Throws UnreadableFile; all messages start with `where`, which names the file.
  RegularFile(std::string where, const std::filesystem::path& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  const std::string& where() const& { return where_; }  ///< the start of messages
  std::string where() && { return std::move(where_); }  ///< of a temporary
  std::uint64_t size() const { return size_; }          ///< in bytes, when it was opened

  /// Reads the next `bytes` bytes, at first those at the start. Throws FileError if the file ends before,
  /// UnreadableFile if reading fails.
  void read(void* out, std::uint64_t bytes);
  /// Passes over the next `bytes` bytes.
  void skip(std::uint64_t bytes) { position_ += bytes; }
  /// Reads `bytes` bytes at a position. Throws as read() does.
  void read_at(std::uint64_t position, void* out, std::uint64_t bytes) const;
  /// All bytes. Throws as read() does.
  std::string contents() const;
  /// Throws FileError if the file has been written to since it was opened, by its size and time. A file that was
  /// renamed or replaced by another has not been.
  void check_unchanged() const;

 private:
  std::string where_;
  int file_;
  std::uint64_t size_ = 0, position_ = 0;
  std::int64_t written_ = 0;  // when, in nanoseconds
};

/// A file or folder that is open for writing or syncing. Throws FileError; messages read `where: failure: reason`,
/// where the caller gives `where` and `failure` and errno the reason.
class OutputFile {
 public:
  /// Opens the file.
  OutputFile(std::string where, const std::filesystem::path& path, OpenFor use, const char* failure);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Writes all bytes, or returns false with the reason in errno.
  bool write(const char* data, std::size_t bytes) const;
  /// Waits until the disk has the data. File systems that cannot sync folders (EINVAL) are not an error.
  void sync(const char* failure) const;
  /// Closes the file, which the destructor would do without reporting errors.
  void close();
  /// Throws FileError with `failure` and the reason in errno unless `ok`.
  void require(bool ok, const char* failure) const;

 private:
  std::string where_;
  int file_;
};

}  // namespace braid
