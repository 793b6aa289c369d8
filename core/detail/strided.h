#pragma once
#include <cstddef>
#include <functional>

#include <braid/core/tensor.h>

namespace braid::detail {

/// Copies elements [begin, end), counted row-major, of a strided view into contiguous memory.
/// Axes of stride 0 repeat their element; `item` is the size of an element in bytes.
void gather_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item,
                    std::int64_t begin, std::int64_t end, std::byte* out);

/// The same for the whole view, on all threads.
void copy_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item, std::byte* out);

/// Maps a tensor to a view of some of its elements, each at most once.
using View = std::function<Tensor(const Tensor&)>;

/// Writes `from` to the elements of view(out), in place. `out` is contiguous and unshared, in a floating-point dtype,
/// which is that of `from`; shapes are equal.
void write_view(Tensor& out, const View& view, const Tensor& from);

/// The same, `view(out) += from`.
void add_to_view(Tensor& out, const View& view, const Tensor& from);

}  // namespace braid::detail
