#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::detail {

/// The dtypes of the format.
enum class StoredType : std::uint8_t {
  // clang-format off
  boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64,
  f4, f6_e2m3, f6_e3m2, f8_e4m3, f8_e5m2, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz, c64,
  // clang-format on
};

struct StoredTypeFacts {
  std::string_view name;       // in files
  std::uint64_t bits;          // per element
  std::optional<DType> dtype;  // in memory; nullopt if braid does not support it
};
const StoredTypeFacts& facts(StoredType type);

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

/// The JSON text of a header, padded with spaces to a multiple of 8 bytes. Throws ValueError for text that is not
/// UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace braid::detail
