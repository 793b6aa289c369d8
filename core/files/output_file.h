#pragma once
#include <cstddef>
#include <string>

namespace braid {

/// A file or folder that is open for writing or syncing. Throws FileError; messages read `where: failure: reason`,
/// where the caller gives `where` and `failure` and errno the reason.
class OutputFile {
 public:
  /// Opens `name` with the flags of open(2).
  OutputFile(std::string where, const char* name, int flags, const char* failure);
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
