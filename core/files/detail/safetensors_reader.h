#pragma once
#include <filesystem>
#include <string>

#include <braid/core/files/regular_file.h>
#include <braid/core/files/safetensors_header.h>

namespace braid::detail {

/// A safetensors file, opened: its header, and its tensors one after the other, so that not all are in memory at once.
/// Throws FileError; its message starts with `where`, which names the file.
class SafetensorsReader {
 public:
  SafetensorsReader(std::string where, const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  /// The next one in the order of the header; undefined when braid does not compute with its dtype.
  Tensor next();

 private:
  RegularFile file_;
  SafetensorsHeader header_;
  std::size_t next_ = 0;
};

}  // namespace braid::detail
