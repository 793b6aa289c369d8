#pragma once
#include <filesystem>
#include <string>

#include <braid/core/files/detail/safetensors_header.h>
#include <braid/core/files/file_system.h>

namespace braid::detail {

/// An open safetensors file: its header, and its tensors one after the other, so that not all are in memory at once.
/// Throws FileError with a message that starts with `where`, which names the file.
class SafetensorsReader {
 public:
  SafetensorsReader(std::string where, const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  /// Reads the next tensor in the order of the header; undefined if braid does not support its dtype.
  Tensor next();

 private:
  RegularFile file_;
  SafetensorsHeader header_;
  std::size_t next_ = 0;
};

}  // namespace braid::detail
