#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include <braid/core/error.h>

namespace braid::detail {

/// A file cannot be opened or read, or is none: what it holds is not known, so nobody may take it for damaged.
struct UnreadableFile : FileError {
  using FileError::FileError;
};

/// A regular file to be read from its start. A FIFO, a device or a folder is refused: none of them is waited for.
/// Throws UnreadableFile; its message starts with `where`, which names the file.
class RegularFile {
 public:
  RegularFile(std::string where, const std::filesystem::path& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  const std::string& where() const { return where_; }
  std::uint64_t size() const { return size_; }

  /// The next `bytes` bytes. Throws FileError when there are fewer, UnreadableFile when they cannot be read.
  void read(void* out, std::uint64_t bytes);

 private:
  std::string where_;
  int file_;
  std::uint64_t size_ = 0;
};

}  // namespace braid::detail
