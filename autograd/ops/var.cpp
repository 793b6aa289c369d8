#include <braid/autograd/ops/var.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <braid/autograd/kernels/rows.h>
#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

/// The sum of f(i) for n elements, by 16 interleaved sums in f64, whose rounding errors stay below those of f32.
double sum_in_f64(std::int64_t n, auto f) {
  constexpr std::int64_t kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  for (; i < n; ++i) lanes[0] += f(i);
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

/// c = x - mean(x) for a row of n elements; returns sum(c^2). Takes the mean off twice: what the first one, rounded,
/// leaves of it may be as large as the deviations.
template <class T>
double center_row(std::int64_t n, const T* x, T* c) {
  const auto count = static_cast<double>(n);
  const double mean = sum_in_f64(n, [=](std::int64_t i) { return double{x[i]}; }) / count;
  const double rest = sum_in_f64(n, [=](std::int64_t i) { return double{c[i] = static_cast<T>(x[i] - mean)}; }) / count;
  return sum_in_f64(n, [=](std::int64_t i) {
    const double centered = c[i] - rest;
    c[i] = static_cast<T>(centered);
    return centered * centered;
  });
}

/// The variance, with the axes kept, and x - mean(x).
std::pair<Tensor, Tensor> forward(const char* op, const Tensor& x, const Axes& axes, const kernels::RowsAlong& rows,
                                  double divisor) {
  const std::int64_t n = rows.width;
  const Tensor laid_out = rows.lay_out(x);
  Tensor centered(laid_out.shape(), x.dtype()), variance(reduced_shape(op, x.shape(), axes, true), x.dtype());
  dispatch_float(op, x.dtype(), [&]<class T>(T) {
    const T* from = laid_out.data<T>();
    T *c = centered.mutable_data<T>(), *y = variance.mutable_data<T>();
    detail::parallel_for_each(rows.count, n, 16384, [&](std::int64_t row) {
      y[row] = static_cast<T>(center_row(n, from + row * n, c + row * n) / divisor);
    });
  });
  return {variance, rows.restore(centered)};
}

Var composed(const Var& x, const Axes& axes, KeepDims keep_dims, double divisor) {
  Var centered = x;
  for (int i = 0; i < 2; ++i) centered = centered - mean(centered, axes, true);
  return sum(centered * centered, axes, keep_dims) / divisor;
}

/// The variance, or its root y. dx = dy 2 (x - mean) / divisor, or dy (x - mean) / (divisor y).
Var spread(const char* op, const Var& x, const Axes& axes, KeepDims keep_dims, double correction, bool as_root) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const Var& wide) { return spread(op, wide, axes, keep_dims, correction, as_root); }, x);
  const kernels::RowsAlong rows(op, x.shape(), axes);
  const double divisor = std::max(static_cast<double>(rows.width) - correction, 0.0);
  if (Composed::active()) {
    const Var variance = composed(x, axes, keep_dims, divisor);
    return as_root ? detail::root(variance) : variance;
  }
  const auto [variance, centered] = forward(op, x.value(), axes, rows, divisor);
  auto root = [](auto v) { return std::sqrt(v); };
  const Tensor y = as_root ? map(op, root, variance) : variance;
  return record(op, y.reshape(reduced_shape(op, x.shape(), axes, keep_dims)), {x},
                [=, centered = centered, d = divisor](const Tensor& dy) {
                  auto vjp = [d](auto dy, auto c) { return dy * (2 * c / static_cast<decltype(c)>(d)); };
                  auto vjp_root = [d](auto dy, auto c, auto y) {
                    return y == 0 ? decltype(y){0} : dy * (c / (static_cast<decltype(c)>(d) * y));
                  };
                  const Tensor kept = dy.reshape(y.shape());
                  return as_root ? map(op, vjp_root, kept, centered, y) : map(op, vjp, kept, centered);
                });
}

}  // namespace

Var var(const Var& x, const Axes& axes, KeepDims keep_dims, double correction) {
  return spread("var", x, axes, keep_dims, correction, false);
}

Var stddev(const Var& x, const Axes& axes, KeepDims keep_dims, double correction) {
  return spread("stddev", x, axes, keep_dims, correction, true);
}

}  // namespace braid
