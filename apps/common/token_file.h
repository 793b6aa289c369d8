#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace braid::examples {

/// A file of token ids, mapped into memory, so that only what is read is loaded. Ids are uint16 without a header, as
/// nanoGPT writes them, or stand behind one of 256 int32 of llm.c: its magic number 20240520 with version 1 for
/// uint16, 20240801 with version 7 for uint32, and the number of ids. Little-endian. A value: copies share the mapping.
class TokenFile {
 public:
  /// Throws FileError naming the file when it cannot be read or is none.
  explicit TokenFile(const std::filesystem::path& path);

  std::int64_t size() const { return size_; }
  /// Reads all of them.
  std::int64_t highest_id() const;
  /// Writes `count` ids from the one at `start` on, and returns the end of what was written.
  std::int32_t* copy(std::int64_t start, std::int64_t count, std::int32_t* out) const;
  /// The file.
  std::string_view bytes() const;

 private:
  struct Mapping;

  std::shared_ptr<const Mapping> mapping_;
  std::int64_t header_ = 0, size_ = 0;
  bool wide_ = false;  // uint32
};

}  // namespace braid::examples
