#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::detail {

/// A tensor of a safetensors header: its elements take the bytes [begin, end) after the header.
struct StoredTensor {
  std::string name;
  DType dtype;         // in memory
  std::uint64_t item;  // bytes of an element in the file: 8 for I64, which becomes i32
  Shape shape;
  std::uint64_t begin, end;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their elements, which fill the data without gaps
  std::map<std::string, std::string> metadata;
};

/// Reads and checks the JSON text of a header before `data_bytes` bytes of elements. Throws FileError; its message
/// starts with `where`.
SafetensorsHeader parse_safetensors_header(const std::string& where, const std::string& text, std::uint64_t data_bytes);

/// Text of a file as messages quote it: on one line, in printable ASCII, cut after 80 characters.
std::string excerpt(std::string_view text);

/// The JSON text of a header, padded with spaces to a multiple of 8 bytes. Throws ValueError for text that is not
/// UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace braid::detail
