#pragma once
#include <cstddef>
#include <string>

namespace braid::detail {

/// A file or folder opened to be written or synced. Throws FileError; messages read `where: failure: reason`.
class OutputFile {
 public:
  OutputFile(std::string where, const char* name, int flags, const char* failure);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Returns whether all bytes were written; if not, errno says why.
  bool write(const char* data, std::size_t bytes) const;
  /// Waits until the disk has it. Some file systems cannot sync folders (EINVAL); nothing is to be done.
  void sync(const char* failure) const;
  void close();
  /// Throws the failure with the reason that errno has, unless `ok`.
  void require(bool ok, const char* failure) const;

 private:
  std::string where_;
  int file_;
};

}  // namespace braid::detail
