#pragma once
#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::detail {

// Reads tensors from a source, whose `read(void* out, std::uint64_t bytes)` gives the next bytes of a file.

static_assert(std::endian::native == std::endian::little, "files are little endian");

template <class Source>
Tensor read_elements(Source& source, const Shape& shape, DType dtype) {
  Tensor tensor(shape, dtype);
  source.read(tensor.mutable_bytes(), tensor.numel() * size_of(dtype));
  return tensor;
}

/// Elements of type Stored, each converted to type T.
template <class Stored, class T, class Source, class F>
Tensor read_converted(Source& source, const Shape& shape, F convert) {
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

/// Integers of type Stored. Throws FileError unless all fit i32; `what` describes them.
template <class Stored, class Source>
Tensor read_integers(Source& source, const Shape& shape, const std::string& what) {
  return read_converted<Stored, std::int32_t>(source, shape, [&](Stored value) {
    check<FileError>(std::in_range<std::int32_t>(value), "{} must fit 32 bits but one is {}", what, value);
    return static_cast<std::int32_t>(value);
  });
}

/// IEEE 754 half precision, as f32.
template <class Source>
Tensor read_f16(Source& source, const Shape& shape) {
  return read_converted<std::uint16_t, float>(source, shape, [](std::uint16_t half) {
    // An f32 with these bits has an exponent that is 112 too low; that of infinities and NaN is the largest.
    const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fff) << 13;
    const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    const std::uint32_t bits = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : scaled;
    return std::bit_cast<float>(bits | static_cast<std::uint32_t>(half & 0x8000) << 16);
  });
}

/// Bytes, as 1 where they are not 0.
template <class Source>
Tensor read_booleans(Source& source, const Shape& shape) {
  return read_converted<std::uint8_t, std::int32_t>(source, shape, [](std::uint8_t v) { return v != 0 ? 1 : 0; });
}

}  // namespace braid::detail
