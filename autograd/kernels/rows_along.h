#pragma once
#include <algorithm>
#include <vector>

#include <braid/core/parallel.h>
#include <braid/core/reduce.h>

namespace braid::kernels {

/// A tensor seen as [rows, width], where `width` counts the elements along some axes: for kernels over rows.
struct RowsAlong {
  Axes order, inverse;  // the other axes, then the given ones; and back
  std::int64_t rows, width;

  /// No axes are all axes. Throws ShapeError naming `op` on an axis that is not there or is given twice.
  RowsAlong(const char* op, const Shape& shape, const Axes& axes)
      : rows(reduced_shape(op, shape, axes, false).numel()) {
    std::vector<bool> along(static_cast<std::size_t>(shape.rank()), axes.empty());
    for (const int axis : axes) along[static_cast<std::size_t>(shape.index(axis))] = true;
    width = 1;
    for (const bool last : {false, true})
      for (int axis = 0; axis < shape.rank(); ++axis)
        if (along[static_cast<std::size_t>(axis)] == last) {
          order.push_back(axis);
          if (last) width *= shape[axis];
        }
    inverse.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) inverse[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }

  /// The elements row by row; x itself when the axes are the last ones.
  Tensor lay_out(const Tensor& x) const { return x.permute(order).contiguous(); }
  /// The axes of what was laid out in their former order.
  Tensor restore(const Tensor& y) const { return y.permute(inverse); }

  /// Calls f(first_row, rows) for blocks of rows on all threads.
  template <class F>
  void for_each_block(F f) const {
    const std::int64_t block = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, width));
    parallel_for(rows, block, [&](std::int64_t begin, std::int64_t end) { f(begin, end - begin); });
  }
};

/// A tensor shaped like the inputs, computed row by row: `kernel(rows, width, const T* in..., T* out)`.
template <class Kernel, class... Inputs>
Tensor map_rows(const char* op, const RowsAlong& along, Kernel kernel, const Inputs&... inputs) {
  auto run = [&](const Tensor& first, const auto&... rest) {
    Tensor y(first.shape(), first.dtype());
    dispatch_float(op, first.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* out = y.mutable_data<T>();
      along.for_each_block([&](std::int64_t row, std::int64_t n) {
        const std::int64_t at = row * along.width;
        kernel(n, along.width, first.template data<T>() + at, (rest.template data<T>() + at)..., out + at);
      });
    });
    return along.restore(y);
  };
  return run(along.lay_out(inputs)...);
}

}  // namespace braid::kernels
