#include <braid/autograd/ops/var.h>

#include <algorithm>
#include <cmath>

#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

/// The number of elements that each result is made of.
double count(const char* op, const Shape& x, const Axes& axes) {
  const std::int64_t results = reduced_shape(op, x, axes, true).numel();
  return static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(results, 1));
}

struct Spread {
  Tensor variance;  // with the axes kept
  Tensor centered;  // x - mean(x), whose mean in turn,
  Tensor rest;      // with the axes kept, may be as large as the deviations, since the first mean was rounded
  double divisor;
};

/// Squares are added in f64, in which their rounding errors do not grow with their number.
Spread forward(const char* op, const Tensor& x, const Axes& axes, double correction) {
  const double n = count(op, x.shape(), axes), divisor = std::max(n - correction, 0.0);
  auto mean = [=](const Tensor& of) {
    auto divide = [n](auto sum) { return sum / static_cast<decltype(sum)>(n); };
    return map(op, divide, reduce_sum(of, axes, true, op));
  };
  const Tensor centered = map(
                   op, [](auto x, auto mean) { return x - mean; }, x, mean(x)),
               rest = mean(centered);
  auto square = [](double c, double rest) { return (c - rest) * (c - rest); };
  const Tensor squares = dispatch_float(
      op, x.dtype(), [&](auto zero) { return detail::map_as<decltype(zero), double>(op, square, centered, rest); });
  auto divide = [divisor](auto sum) { return sum / divisor; };
  return {map(op, divide, reduce_sum(squares, axes, true)).to(x.dtype()), centered, rest, divisor};
}

Var composed(const char* op, const Var& x, const Axes& axes, KeepDims keep_dims, double correction) {
  Var centered = x;
  for (int i = 0; i < 2; ++i) centered = centered - mean(centered, axes, true);
  return sum(centered * centered, axes, keep_dims) / std::max(count(op, x.shape(), axes) - correction, 0.0);
}

}  // namespace

Var var(const Var& x, const Axes& axes, KeepDims keep_dims, double correction) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const Var& wide) { return var(wide, axes, keep_dims, correction); }, x);
  check_floating("var", x.dtype());
  if (Composed::active()) return composed("var", x, axes, keep_dims, correction);
  const Spread spread = forward("var", x.value(), axes, correction);
  const Tensor y = spread.variance.reshape(reduced_shape("var", x.shape(), axes, keep_dims));
  // dx = dy 2 (x - mean) / divisor
  return record("var", y, {x}, [centered = spread.centered, rest = spread.rest, d = spread.divisor](const Tensor& dy) {
    auto vjp = [d](auto dy, auto c, auto r) { return dy * (2 * (c - r) / static_cast<decltype(c)>(d)); };
    return map("var", vjp, dy.reshape(rest.shape()), centered, rest);
  });
}

Var stddev(const Var& x, const Axes& axes, KeepDims keep_dims, double correction) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const Var& wide) { return stddev(wide, axes, keep_dims, correction); }, x);
  check_floating("stddev", x.dtype());
  if (Composed::active()) return detail::root(composed("stddev", x, axes, keep_dims, correction));
  const Spread spread = forward("stddev", x.value(), axes, correction);
  const Tensor y = map(
      "stddev", [](auto v) { return std::sqrt(v); }, spread.variance);
  // dx = dy (x - mean) / (divisor y)
  return record("stddev", y.reshape(reduced_shape("stddev", x.shape(), axes, keep_dims)), {x},
                [centered = spread.centered, rest = spread.rest, d = spread.divisor, y](const Tensor& dy) {
                  auto vjp = [d](auto dy, auto c, auto r, auto y) {
                    return y == 0 ? decltype(y){0} : dy * ((c - r) / (static_cast<decltype(c)>(d) * y));
                  };
                  return map("stddev", vjp, dy.reshape(y.shape()), centered, rest, y);
                });
}

}  // namespace braid
