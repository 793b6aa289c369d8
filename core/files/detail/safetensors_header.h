#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <braid/core/files/detail/elements.h>

namespace braid::detail {

/// A tensor of a safetensors header; its elements are the bytes [begin, end) after the header.
struct StoredTensor {
  std::string name;
  StoredType type;
  Shape shape;
  std::uint64_t begin, end;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their elements, which fill the data without gaps
  std::map<std::string, std::string> metadata;
};

/// Parses and checks the JSON text of a header that is followed by `data_bytes` bytes of elements. Throws FileError
/// with a message that starts with `where`.
SafetensorsHeader parse_safetensors_header(const std::string& where, const std::string& text, std::uint64_t data_bytes);

/// The JSON text of a header, padded with spaces to a multiple of 8 bytes. Throws ValueError unless texts are UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace braid::detail
