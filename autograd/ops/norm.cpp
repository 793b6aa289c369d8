#include <braid/autograd/ops/norm.h>

#include <cmath>

#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

/// The largest size of an element, by which all are divided before they are squared; 1 instead of 0 and infinity.
Tensor scale_of(const Tensor& x, const Axes& axes) {
  auto size = [](auto x) { return std::abs(x); };
  auto scale_for = [](auto largest) { return largest == 0 || std::isinf(largest) ? decltype(largest){1} : largest; };
  return map("norm", scale_for, reduce_max(map("norm", size, x), axes, true));
}

/// The norm with the axes kept.
Tensor forward(const Tensor& x, const Axes& axes) {
  if (x.numel() == 0) return reduce_sum(x, axes, true, "norm");
  auto square = [](auto x, auto scale) { return x / scale * (x / scale); };
  auto root = [](auto sum, auto scale) { return std::sqrt(sum) * scale; };
  const Tensor scale = scale_of(x, axes);
  return map("norm", root, reduce_sum(map("norm", square, x, scale), axes, true), scale);
}

Var composed(const Var& x, const Axes& axes) {
  if (x.value().numel() == 0) return sum(x, axes, true);
  const Tensor scale = scale_of(x.value(), axes);
  const Var scaled = x / scale;
  return detail::root(sum(scaled * scaled, axes, true)) * scale;
}

}  // namespace

Var norm(const Var& x, const Axes& axes, KeepDims keep_dims) {
  if (x.dtype() == DType::bf16) return detail::in_f32([&](const Var& wide) { return norm(wide, axes, keep_dims); }, x);
  const Shape shape = reduced_shape("norm", x.shape(), axes, keep_dims);
  check_floating("norm", x.dtype());
  if (Composed::active()) return reshape(composed(x, axes), shape);
  const Tensor y = forward(x.value(), axes);
  // dx = dy x / y
  return record("norm", y.reshape(shape), {x}, [x = x.value(), y](const Tensor& dy) {
    auto vjp = [](auto dy, auto x, auto y) { return y == 0 ? y : dy * (x / y); };
    return map("norm", vjp, dy.reshape(y.shape()), x, y);
  });
}

}  // namespace braid
