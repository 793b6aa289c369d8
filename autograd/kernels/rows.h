#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <numeric>
#include <vector>

#include <braid/core/parallel.h>
#include <braid/core/reduce.h>

namespace braid::kernels {

/// A contiguous tensor seen as [count, width], and the blocks of rows that a thread takes at a time: at least 16384
/// elements each, at most 64 blocks, so that sums over rows have few partial results.
struct Rows {
  std::int64_t count, width, block;

  Rows(std::int64_t count, std::int64_t width)
      : count(count),
        width(width),
        block(std::max({std::int64_t{1}, 16384 / std::max<std::int64_t>(width, 1), (count + 63) / 64})) {}

  /// The rows of a tensor [..., width].
  explicit Rows(const Shape& shape) : Rows(shape.without(-1).numel(), shape[-1]) {}

  std::int64_t blocks() const { return (count + block - 1) / block; }
};

/// Calls a kernel over the rows [begin, end) of `in` for each block on all threads.
template <auto kKernel, std::derived_from<Rows> In, class... Args>
void for_all_rows(const In& in, Args... args) {
  parallel_for(in.count, in.block, [&](std::int64_t begin, std::int64_t end) { kKernel(in, begin, end, args...); });
}

/// The number of elements of a tensor along some axes, or along all if `axes` is empty.
inline std::int64_t elements_along(const Shape& shape, const Axes& axes) {
  if (axes.empty()) return shape.numel();
  return std::accumulate(axes.begin(), axes.end(), std::int64_t{1},
                         [&](std::int64_t n, int axis) { return n * shape[axis]; });
}

/// The rows of a tensor along some of its axes, for kernels that want them contiguous.
struct RowsAlong : Rows {
  std::vector<int> order;    // the permutation that moves these axes to the end
  std::vector<int> inverse;  // the one that moves them back

  /// No axes are all axes. Throws ShapeError naming `op` on an axis that is not there or is given twice.
  RowsAlong(const char* op, const Shape& shape, const Axes& axes)
      : Rows{reduced_shape(op, shape, axes, false).numel(), elements_along(shape, axes)},  // the first checks the axes
        order(static_cast<std::size_t>(shape.rank())),
        inverse(order.size()) {
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_partition(order, [&](int axis) {
      return !axes.empty() && std::ranges::none_of(axes, [&](int along) { return shape.index(along) == axis; });
    });
    for (std::size_t i = 0; i < order.size(); ++i) inverse[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }

  /// The elements row by row; x itself when it is contiguous and the axes are its last ones.
  Tensor lay_out(const Tensor& x) const { return x.permute(order).contiguous(); }
  /// The axes of a tensor that was laid out, in their former order.
  Tensor restore(const Tensor& y) const { return y.permute(inverse); }
};

}  // namespace braid::kernels
