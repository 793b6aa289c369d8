#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/core/tensor.h>
#include <braid/core/utf8.h>

namespace braid::detail {

static_assert(std::endian::native == std::endian::little, "files are little endian");

/// The types of elements in files, those of .npy files first.
enum class StoredType : std::uint8_t {
  // clang-format off
  f32, f64, i32, f16, boolean, i8, u8, i16, u16, u32, i64, u64,
  bf16, f4, f6_e2m3, f6_e3m2, f8_e4m3, f8_e5m2, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz, c64,
  // clang-format on
};

struct StoredTypeFacts {
  std::string_view name;       // in safetensors files
  std::uint64_t bits;          // per element
  std::optional<DType> dtype;  // in memory; nullopt if braid does not support it
};
// In the order of StoredType.
inline constexpr std::array<StoredTypeFacts, 22> kStoredTypes{{
    {"F32", 32, DType::f32},   {"F64", 64, DType::f64}, {"I32", 32, DType::i32}, {"F16", 16, DType::f32},
    {"BOOL", 8, DType::i32},   {"I8", 8, DType::i32},   {"U8", 8, DType::i32},   {"I16", 16, DType::i32},
    {"U16", 16, DType::i32},   {"U32", 32, DType::i32}, {"I64", 64, DType::i32}, {"U64", 64, DType::i32},
    {"BF16", 16, DType::bf16}, {"F4", 4, {}},           {"F6_E2M3", 6, {}},      {"F6_E3M2", 6, {}},
    {"F8_E4M3", 8, {}},        {"F8_E5M2", 8, {}},      {"F8_E8M0", 8, {}},      {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},    {"C64", 64, {}},
}};
static_assert(kStoredTypes[static_cast<int>(StoredType::c64)].name == "C64");

inline const StoredTypeFacts& facts(StoredType type) { return kStoredTypes[static_cast<std::size_t>(type)]; }

/// The shape of these sizes, which are not negative. Throws FileError with a message that starts with `where` unless
/// the product of all but zeros is at most 2^59, so that no stride or count of bytes overflows.
template <class Size>
Shape checked_shape(const std::string& where, const std::vector<Size>& sizes) {
  check<FileError>(sizes.size() <= Shape::kMaxRank, "{}: shape must have at most {} axes but has {}", where,
                   Shape::kMaxRank, sizes.size());
  Size product = 1;
  for (const Size size : sizes) {
    check<FileError>(size <= (Size{1} << 59) / product, "{}: shape must have at most 2^59 elements but is [{}]", where,
                     shortened(fmt::format("{}", fmt::join(sizes, ", "))));
    product *= std::max<Size>(size, 1);
  }
  return Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end()));
}

/// Elements of type Stored, each converted to type T.
template <class Stored, class T>
Tensor read_converted(auto& source, const Shape& shape, auto convert) {
  constexpr std::int64_t kChunk = 65536;
  Tensor tensor(shape, dtype_of<T>());
  T* out = tensor.mutable_data<T>();
  std::vector<Stored> chunk(std::min(kChunk, tensor.numel()));
  for (std::int64_t rest = tensor.numel(); rest > 0; rest -= kChunk) {
    const std::int64_t count = std::min(rest, kChunk);
    source.read(chunk.data(), count * sizeof(Stored));
    out = std::transform(chunk.begin(), chunk.begin() + count, out, convert);
  }
  return tensor;
}

/// IEEE 754 half precision as f32.
inline float widened(std::uint16_t half) {
  // An f32 with these bits has an exponent that is 112 too low; that of infinities and NaN is the largest.
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fff) << 13;
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const std::uint32_t bits = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : scaled;
  return std::bit_cast<float>(bits | static_cast<std::uint32_t>(half & 0x8000) << 16);
}

/// Reads a tensor of a type that braid supports from a source, whose `read(void* out, std::uint64_t bytes)` gives the
/// next bytes of a file. Throws FileError unless all integers fit i32; `what` describes them.
Tensor read_stored(auto& source, StoredType type, const Shape& shape, const std::string& what) {
  const auto to_i32 = [&](auto value) {
    check<FileError>(std::in_range<std::int32_t>(value), "{} must fit 32 bits but one is {}", what, value);
    return static_cast<std::int32_t>(value);
  };
  switch (type) {
    case StoredType::boolean:
      return read_converted<std::uint8_t, std::int32_t>(source, shape, [](auto byte) { return byte != 0 ? 1 : 0; });
    case StoredType::u8: return read_converted<std::uint8_t, std::int32_t>(source, shape, to_i32);
    case StoredType::i8: return read_converted<std::int8_t, std::int32_t>(source, shape, to_i32);
    case StoredType::u16: return read_converted<std::uint16_t, std::int32_t>(source, shape, to_i32);
    case StoredType::i16: return read_converted<std::int16_t, std::int32_t>(source, shape, to_i32);
    case StoredType::u32: return read_converted<std::uint32_t, std::int32_t>(source, shape, to_i32);
    case StoredType::u64: return read_converted<std::uint64_t, std::int32_t>(source, shape, to_i32);
    case StoredType::i64: return read_converted<std::int64_t, std::int32_t>(source, shape, to_i32);
    case StoredType::f16: return read_converted<std::uint16_t, float>(source, shape, widened);
    default: break;
  }
  Tensor tensor(shape, *facts(type).dtype);
  source.read(tensor.mutable_bytes(), tensor.numel() * size_of(tensor.dtype()));
  return tensor;
}

}  // namespace braid::detail
