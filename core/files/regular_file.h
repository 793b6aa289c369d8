#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include <braid/core/error.h>

namespace braid {

/// A file cannot be opened or read, or is not a regular file. Its contents are unknown, so that it must not be reported
/// as damaged.
struct UnreadableFile : FileError {
  using FileError::FileError;
};

/// A regular file that is read from its start. FIFOs, devices and folders are refused without waiting for them.
class RegularFile {
 public:
  /// Opens a file. Throws UnreadableFile; all messages start with `where`, which names the file.
  RegularFile(std::string where, const std::filesystem::path& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  const std::string& where() const { return where_; }  ///< the start of messages
  std::uint64_t size() const { return size_; }         ///< in bytes, when it was opened

  /// Reads the next `bytes` bytes. Throws FileError if the file ends before, UnreadableFile if reading fails.
  void read(void* out, std::uint64_t bytes);

 private:
  std::string where_;
  int file_;
  std::uint64_t size_ = 0;
};

}  // namespace braid
