#include <braid/core/reduce.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <braid/core/parallel.h>

namespace braid {
namespace {

std::vector<bool> reduced_mask(const char* op, const Shape& shape, const Axes& axes) {
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank()), axes.empty());
  for (const int given : axes) {
    const auto axis = static_cast<std::size_t>(shape.index(given, op));
    check_shape(!reduced[axis], "{}: axis {} of shape {} is given twice", op, given, shape);
    reduced[axis] = true;
  }
  return reduced;
}

/// 16 interleaved accumulators: vectorises and keeps rounding errors small.
template <class T>
T sum_block(const T* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 16;
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  return std::accumulate(x + i, x + n, std::accumulate(lanes, lanes + kLanes, T{0}));
}

/// Blocks of 4096, by all threads unless other rows keep them busy, added in order.
template <class T>
T sum_row(const T* x, std::int64_t n) {
  constexpr std::int64_t kBlock = 4096;
  if (n <= kBlock) return sum_block(x, n);
  std::vector<T> sums(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
  parallel_for(n, kBlock, [&](std::int64_t begin, std::int64_t end) {
    sums[static_cast<std::size_t>(begin / kBlock)] = sum_block(x + begin, end - begin);
  });
  return std::accumulate(sums.begin(), sums.end(), T{0});
}

/// x [rows, n] -> [rows]
template <class T>
void sum_rows(const T* x, std::int64_t rows, std::int64_t n, T* y) {
  parallel_for(rows, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(n, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) y[row] = sum_row(x + row * n, n);
               });
}

/// x [rows, n] -> [n]: a thread takes a strip of columns; groups of 64 rows are added up in double, so that rounding
/// errors do not grow with the number of rows.
template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t n, T* y) {
  constexpr std::int64_t kStrip = 64, kGroup = 64;
  parallel_for(n, kStrip, [&](std::int64_t begin, std::int64_t end) {
    double total[kStrip] = {};
    for (std::int64_t first = 0; first < rows; first += kGroup) {
      T group[kStrip] = {};
      for (std::int64_t row = first; row < std::min(rows, first + kGroup); ++row)
        for (std::int64_t c = begin; c < end; ++c) group[c - begin] += x[row * n + c];
      for (std::int64_t c = 0; c < kStrip; ++c) total[c] += group[c];
    }
    for (std::int64_t c = begin; c < end; ++c) y[c] = static_cast<T>(total[c - begin]);
  });
}

/// The best of n >= 1 elements, NaN if there is one: 16 interleaved choices vectorise.
template <class T, class Better>
T select_row(const T* x, std::int64_t n, Better better) {
  constexpr std::int64_t kLanes = 16;
  const auto choose = [&](T best, T v) { return ((best != best) | better(best, v)) ? best : v; };  // NaN stays
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, x[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = choose(lanes[lane], x[i + lane]);
  return std::accumulate(x + i, x + n, std::accumulate(lanes, lanes + kLanes, x[0], choose), choose);
}

/// x [rows, n] -> [rows]
template <class T, class Better>
void select_rows(const T* x, std::int64_t rows, std::int64_t n, T* y, Better better) {
  parallel_for(rows, std::max<std::int64_t>(1, 16384 / n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) y[row] = select_row(x + row * n, n, better);
  });
}

/// The reduced axes moved behind the kept ones.
Tensor reduced_last(const Tensor& x, const std::vector<bool>& reduced) {
  std::vector<int> order;
  for (const bool last : {false, true})
    for (int axis = 0; axis < x.rank(); ++axis)
      if (reduced[static_cast<std::size_t>(axis)] == last) order.push_back(axis);
  return x.permute(order).contiguous();
}

Tensor select(const char* op, const Tensor& x, const Axes& axes, bool keep_dims, auto better) {
  Tensor y(reduced_shape(op, x.shape(), axes, keep_dims), x.dtype());
  if (y.numel() == 0) return y;
  check_shape(x.numel() > 0, "{}: shape {} has no elements to choose from", op, x.shape());
  const Tensor rows = reduced_last(x, reduced_mask(op, x.shape(), axes));
  dispatch_float(op, x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    select_rows(rows.data<T>(), y.numel(), x.numel() / y.numel(), y.mutable_data<T>(), better);
  });
  return y;
}

}  // namespace

Shape reduced_shape(const char* op, const Shape& shape, const Axes& axes, bool keep_dims) {
  const std::vector<bool> reduced = reduced_mask(op, shape, axes);
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[static_cast<std::size_t>(axis)])
      sizes.push_back(shape[axis]);
    else if (keep_dims)
      sizes.push_back(1);
  }
  return Shape(sizes);
}

Tensor reduce_sum(const Tensor& x, const Axes& axes, bool keep_dims, const char* op) {
  const std::vector<bool> reduced = reduced_mask(op, x.shape(), axes);
  Tensor y(reduced_shape(op, x.shape(), axes, keep_dims), x.dtype());
  const std::int64_t n = y.numel() == 0 ? 0 : x.numel() / y.numel();
  // All reduced axes in front of kept ones: add rows instead of transposing.
  const bool leading = y.numel() > 1 && std::ranges::is_sorted(reduced, std::greater<>()) && x.is_contiguous();
  dispatch_float(op, x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = y.mutable_data<T>();
    if (leading)
      sum_columns(x.data<T>(), n, y.numel(), out);
    else
      sum_rows(reduced_last(x, reduced).data<T>(), y.numel(), n, out);
  });
  return y;
}

Tensor reduce_max(const Tensor& x, const Axes& axes, bool keep_dims) {
  return select("max", x, axes, keep_dims, std::greater<>());
}

Tensor reduce_min(const Tensor& x, const Axes& axes, bool keep_dims) {
  return select("min", x, axes, keep_dims, std::less<>());
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int added = x.rank() - shape.rank();
  Axes axes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis < added || (shape[axis - added] == 1 && x.size(axis) != 1)) axes.push_back(axis);
  return (axes.empty() ? x : reduce_sum(x, axes, true)).reshape(shape);
}

}  // namespace braid
