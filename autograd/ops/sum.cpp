#include <braid/autograd/ops/sum.h>

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/core/map.h>

namespace braid {
namespace {

/// The cotangent of every element that went into a sum: dy, repeated along the summed axes without a copy.
Tensor spread(const Tensor& dy, const Axes& axes, const Shape& shape) {
  return dy.reshape(reduced_shape("sum", shape, axes, true)).broadcast_to(shape);
}

Tensor scaled(const Tensor& x, double factor) {
  auto scale = [factor](auto v) { return v * static_cast<decltype(v)>(factor); };
  return map("mean", scale, x);
}

}  // namespace

Var sum(const Var& x, const Axes& axes, KeepDims keep_dims) {
  return detail::linear_map(
      "sum", x, [axes, keep_dims](const Tensor& x) { return reduce_sum(x, axes, keep_dims); },
      [axes, shape = x.shape()](const Tensor& dy) { return spread(dy, axes, shape); });
}

Var mean(const Var& x, const Axes& axes, KeepDims keep_dims) {
  check_floating("mean", x.dtype());
  const double means = static_cast<double>(reduced_shape("mean", x.shape(), axes, keep_dims).numel());
  const double factor = means / static_cast<double>(x.value().numel());
  return detail::linear_map(
      "mean", x,
      [=](const Tensor& x) {
        return scaled(reduce_sum(x, axes, keep_dims, "mean", compute_dtype(x.dtype())), factor).to(x.dtype());
      },
      [axes, shape = x.shape(), factor](const Tensor& dy) { return spread(scaled(dy, factor), axes, shape); });
}

}  // namespace braid
