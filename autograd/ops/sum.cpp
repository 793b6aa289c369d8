#include <braid/autograd/ops/sum.h>

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

Var sum(const Var& x, const Axes& axes, bool keep_dims) {
  return record("sum", reduce_sum(x.value(), axes, keep_dims), {x},
                [axes, shape = x.shape()](const Tensor& dy) { return spread(dy, axes, shape); });
}

Var mean(const Var& x, const Axes& axes, bool keep_dims) {
  check_floating("mean", x.dtype());
  const Tensor total = reduce_sum(x.value(), axes, keep_dims, "mean", compute_dtype(x.dtype()));
  const double factor = static_cast<double>(total.numel()) / static_cast<double>(x.value().numel());
  return record("mean", scaled(total, factor).to(x.dtype()), {x}, [axes, shape = x.shape(), factor](const Tensor& dy) {
    return spread(scaled(dy, factor), axes, shape);
  });
}

}  // namespace braid
