#pragma once
#include <array>
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
// In the order of StoredType.
inline constexpr std::array<StoredTypeFacts, 22> kStoredTypes{{
    {"BOOL", 8, DType::i32}, {"U8", 8, DType::i32},   {"I8", 8, DType::i32},     {"U16", 16, DType::i32},
    {"I16", 16, DType::i32}, {"U32", 32, DType::i32}, {"I32", 32, DType::i32},   {"U64", 64, DType::i32},
    {"I64", 64, DType::i32}, {"F16", 16, DType::f32}, {"BF16", 16, DType::bf16}, {"F32", 32, DType::f32},
    {"F64", 64, DType::f64}, {"F4", 4, {}},           {"F6_E2M3", 6, {}},        {"F6_E3M2", 6, {}},
    {"F8_E4M3", 8, {}},      {"F8_E5M2", 8, {}},      {"F8_E8M0", 8, {}},        {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},  {"C64", 64, {}},
}};
static_assert(kStoredTypes[static_cast<int>(StoredType::c64)].name == "C64");

inline const StoredTypeFacts& facts(StoredType type) { return kStoredTypes[static_cast<std::size_t>(type)]; }

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
