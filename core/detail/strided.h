#pragma once
#include <cstddef>

#include <braid/core/shape.h>

namespace braid::detail {

/// Copies elements [begin, end), counted row-major, of a strided view into contiguous memory.
/// Axes of stride 0 repeat their element; `item` is the size of an element in bytes.
void gather_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item,
                    std::int64_t begin, std::int64_t end, std::byte* out);

/// The same for the whole view, on all threads.
void copy_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item, std::byte* out);

}  // namespace braid::detail
