#include <braid/core/reduce.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>

#include <braid/core/parallel.h>

namespace braid {
namespace {

std::vector<bool> reduced_mask(const char* op, const Shape& shape, const Axes& axes) {
  std::vector<bool> reduced(shape.rank(), axes.empty());
  for (const int given : axes) {
    const int axis = shape.index(given, op);
    check_shape(!reduced[axis], "{}: axis {} of shape {} is given twice", op, given, shape);
    reduced[axis] = true;
  }
  return reduced;
}

/// The type of sums: 64 bits for integers, so that nothing overflows.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, std::int64_t, Compute<T>>;

/// A sum as an element of the result.
template <class T, class Sum>
T result(const char* op, Sum sum) {
  if constexpr (std::is_integral_v<T>) check_value(std::in_range<T>(sum), "{}: the sum {} does not fit i32", op, sum);
  return static_cast<T>(sum);
}

/// Combines n elements in 16 interleaved chains from `first`, which vectorize and keep rounding errors of sums small.
template <class T, class Result, class Combine>
Result fold(const T* x, std::int64_t n, Result first, Combine combine) {
  constexpr std::int64_t kLanes = 16;
  Result lanes[kLanes];
  std::fill_n(lanes, kLanes, first);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = combine(lanes[lane], x[i + lane]);
  return std::accumulate(x + i, x + n, std::accumulate(lanes, lanes + kLanes, first, combine), combine);
}

template <class T>
Sum<T> sum_block(const T* x, std::int64_t n) {
  return fold(x, n, Sum<T>{0}, std::plus<Sum<T>>());
}

/// Sums blocks of 4096, on all threads unless they are busy with other rows, and adds those sums in order.
template <class T>
Sum<T> sum_row(const T* x, std::int64_t n) {
  constexpr std::int64_t kBlock = 4096;
  if (n <= kBlock) return sum_block(x, n);
  std::vector<Sum<T>> sums((n + kBlock - 1) / kBlock);
  parallel_for(n, kBlock,
               [&](std::int64_t begin, std::int64_t end) { sums[begin / kBlock] = sum_block(x + begin, end - begin); });
  return std::accumulate(sums.begin(), sums.end(), Sum<T>{0});
}

/// y[row] = f(row of x) for x [rows, n], on all threads.
void reduce_rows(const auto* x, std::int64_t rows, std::int64_t n, auto* y, auto f) {
  detail::parallel_for_each(rows, n, 16384, [&](std::int64_t row) { y[row] = f(x + row * n); });
}

/// x [outer, rows, n] -> [outer, n], in strips of columns; the sums of 64 rows each are added in double, so that
/// rounding errors do not grow with the number of rows.
template <class T, class Y>
void sum_columns(const char* op, const T* x, std::int64_t outer, std::int64_t rows, std::int64_t n, Y* y) {
  constexpr std::int64_t kStrip = 64, kGroup = 64;
  const std::int64_t strips = (n + kStrip - 1) / kStrip;
  const auto sum_strip = [&](const T* in, std::int64_t width, Y* out) {
    std::conditional_t<std::is_integral_v<T>, std::int64_t, double> total[kStrip] = {};
    for (std::int64_t first = 0; first < rows; first += kGroup) {
      Sum<T> group[kStrip] = {};
      for (std::int64_t row = first; row < std::min(rows, first + kGroup); ++row)
        for (std::int64_t c = 0; c < width; ++c) group[c] += in[row * n + c];
      for (std::int64_t c = 0; c < width; ++c) total[c] += group[c];
    }
    for (std::int64_t c = 0; c < width; ++c) out[c] = result<Y>(op, static_cast<Sum<T>>(total[c]));
  };
  detail::parallel_for_each(outer * strips, rows * kStrip, 4096, [&](std::int64_t i) {
    const std::int64_t o = i / strips, c = i % strips * kStrip;
    sum_strip(x + o * rows * n + c, std::min(kStrip, n - c), y + o * n + c);
  });
}

/// The best of n >= 1 elements, NaN if there is one.
template <class T, class Better>
T select_row(const T* x, std::int64_t n, Better better) {
  return fold(x, n, x[0], [&](T best, T v) {  // NaN stays
    const bool is_nan = best != best, wins = better(best, v);
    return (is_nan | wins) ? best : v;
  });
}

/// x with the reduced axes last, contiguous.
Tensor reduced_last(const Tensor& x, const std::vector<bool>& reduced) {
  std::vector<int> order;
  for (const bool last : {false, true})
    for (int axis = 0; axis < x.rank(); ++axis)
      if (reduced[axis] == last) order.push_back(axis);
  return x.permute(order).contiguous();
}

Tensor select(const char* op, const Tensor& x, const Axes& axes, KeepDims keep_dims, auto better) {
  Tensor y(reduced_shape(op, x.shape(), axes, keep_dims), x.dtype());
  if (y.numel() == 0) return y;
  check_shape(x.numel() > 0, "{}: shape {} has no elements to choose from", op, x.shape());
  const Tensor rows = reduced_last(x, reduced_mask(op, x.shape(), axes));
  dispatch(x.dtype(), [&]<class T>(T) {
    const std::int64_t n = x.numel() / y.numel();
    reduce_rows(rows.data<T>(), y.numel(), n, y.mutable_data<T>(),
                [&](const T* row) { return select_row(row, n, better); });
  });
  return y;
}

}  // namespace

Shape reduced_shape(const char* op, const Shape& shape, const Axes& axes, KeepDims keep_dims) {
  const std::vector<bool> reduced = reduced_mask(op, shape, axes);
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[axis])
      sizes.push_back(shape[axis]);
    else if (keep_dims)
      sizes.push_back(1);
  }
  return Shape(sizes);
}

Tensor reduce_sum(const Tensor& x, const Axes& axes, KeepDims keep_dims, const char* op, std::optional<DType> dtype) {
  const std::vector<bool> reduced = reduced_mask(op, x.shape(), axes);
  Tensor y(reduced_shape(op, x.shape(), axes, keep_dims), dtype.value_or(x.dtype()));
  check_parameter_dtype(op, x, y);
  const std::int64_t n = y.numel() == 0 ? 0 : x.numel() / y.numel();
  // Adjacent reduced axes before kept ones that have enough elements: add rows instead of transposing.
  const auto first = std::ranges::find(reduced, true), last = std::find(first, reduced.end(), false);
  const int inner_axis = static_cast<int>(last - reduced.begin());
  const std::int64_t inner = x.shape().axes(inner_axis, x.rank()).numel();
  const bool columns = std::find(last, reduced.end(), true) == reduced.end() && x.is_contiguous() && y.numel() > 1 &&
                       (inner >= 16 || inner == y.numel());
  dispatch(x.dtype(), [&]<class T>(T) {
    const auto sum_into = [&]<class Y>(Y* out) {
      if (columns)
        sum_columns(op, x.data<T>(), y.numel() / inner, n, inner, out);
      else
        reduce_rows(reduced_last(x, reduced).data<T>(), y.numel(), n, out,
                    [&](const T* row) { return result<Y>(op, sum_row(row, n)); });
    };
    if (y.dtype() == x.dtype())
      sum_into(y.mutable_data<T>());
    else if constexpr (std::is_same_v<T, bfloat16>)
      sum_into(y.mutable_data<float>());
  });
  return y;
}

Tensor reduce_max(const Tensor& x, const Axes& axes, KeepDims keep_dims) {
  return select("max", x, axes, keep_dims, std::greater<>());
}

Tensor reduce_min(const Tensor& x, const Axes& axes, KeepDims keep_dims) {
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
