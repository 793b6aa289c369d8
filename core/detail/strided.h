#pragma once
#include <cstddef>
#include <cstdint>

#include <braid/core/dtype.h>
#include <braid/core/shape.h>

namespace braid::detail {

/// Copies elements [begin, end), counted row-major, of a strided view into contiguous memory.
/// Axes of stride 0 repeat their element; `item` is the size of an element in bytes.
void gather_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item,
                    std::int64_t begin, std::int64_t end, std::byte* out);

/// The same for the whole view, on all threads.
void copy_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item, std::byte* out);

/// What put_strided() does with an element.
enum class Put { write, add };

/// Writes contiguous elements `from` over elements [begin, end) of a strided view, counted row-major, or adds them.
void put_strided(Put put, DType dtype, const std::byte* from, std::int64_t begin, std::int64_t end, std::byte* view,
                 const Strides& strides, const Shape& shape);

}  // namespace braid::detail
