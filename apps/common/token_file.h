#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <braid/core/files/file_system.h>

namespace braid::apps {

/// A file of token ids, of which only what is asked for is read. Two formats, both little-endian:
/// nanoGPT's, uint16 without a header; and llm.c's, after a header of 256 int32: the magic number 20240520 with
/// version 1 for uint16 ids, or 20240801 with version 7 for uint32, and the number of ids. Copies share the open file:
/// whoever writes to it ends what reads it with a FileError; another file of the same name does not count.
class TokenFile {
 public:
  /// Throws FileError naming the file when it cannot be read or has neither format.
  explicit TokenFile(const std::filesystem::path& path);

  std::int64_t size() const { return size_; }
  /// The highest id. Reads all of them.
  std::int64_t highest_id() const;
  /// Copies `count` ids, starting at index `start`, to `out` and returns the end of the copy. Throws FileError when the
  /// file has been written to since it was opened.
  std::int32_t* copy(std::int64_t start, std::int64_t count, std::int32_t* out) const;
  const RegularFile& file() const { return *file_; }

 private:
  template <class Id>
  std::vector<Id> read(std::int64_t start, std::int64_t count) const;

  std::shared_ptr<const RegularFile> file_;
  std::int64_t header_ = 0, size_ = 0;
  bool wide_ = false;  // uint32
};

}  // namespace braid::apps
