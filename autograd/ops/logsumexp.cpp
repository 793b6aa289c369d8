#include <braid/autograd/ops/logsumexp.h>

#include <limits>

#include <braid/autograd/kernels/softmax.h>
#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/softmax.h>

namespace braid {
namespace {

using kernels::In, kernels::Out, kernels::RowsAlong;

Tensor forward(const RowsAlong& along, const Tensor& x, const Shape& shape) {
  const Tensor in = along.lay_out(x);
  Tensor y(shape, x.dtype());
  kernels::softmax_kernels().dispatch("logsumexp", x.dtype(),
                                      [&](const auto& kernel) { kernel.logsumexp(along, In{in}, Out{y}); });
  return y;
}

Tensor backward(const RowsAlong& along, const Tensor& dy, const Tensor& x, const Tensor& y) {
  const Tensor in = along.lay_out(x), dy_rows = dy.contiguous();
  Tensor dx(in.shape(), in.dtype());
  kernels::softmax_kernels().dispatch("logsumexp", x.dtype(), [&](const auto& kernel) {
    kernel.logsumexp_vjp(along, In{dy_rows}, In{in}, In{y}, Out{dx});
  });
  return along.restore(dx);
}

/// Without terms, or where all are -infinity, the sum is 0 and gets no gradient.
Var composed(const Var& x, const Axes& axes) {
  const Tensor shift = detail::largest(x.value(), axes);
  const Var total = sum(exp(x - shift), axes, true), safe = where(total.value(), total, 1.0);
  return where(total.value(), log(safe) + shift, -std::numeric_limits<double>::infinity());
}

/// dx = dy softmax(x), 0 where all elements are -infinity.
Var rule(const Applied& op, const Axes& axes) {
  const Shape kept = reduced_shape("logsumexp", op.x().shape(), axes, true);
  auto is_empty = [](auto y) { return y == -std::numeric_limits<decltype(y)>::infinity(); };
  const Tensor empty = map_truth("logsumexp", is_empty, op.y().value()).reshape(kept);
  const Var dy = reshape(op.dy(), kept);
  if (reduce_sum(empty).item() == 0) return dy * softmax(op.x(), axes);
  return where(empty, 0.0, dy) * softmax(where(empty, 0.0, op.x()), axes);
}

}  // namespace

Var logsumexp(const Var& x, const Axes& axes, KeepDims keep_dims) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const Var& wide) { return logsumexp(wide, axes, keep_dims); }, x);
  const RowsAlong along("logsumexp", x.shape(), axes);
  const Shape shape = reduced_shape("logsumexp", x.shape(), axes, keep_dims);
  check_floating("logsumexp", x.dtype());
  if (Composed::active(Composed::Ops::with_rule)) return reshape(composed(x, axes), shape);
  Tensor y = forward(along, x.value(), shape);
  return record(
      "logsumexp", y, {x}, [along, x = x.value(), y](const Tensor& dy) { return backward(along, dy, x, y); },
      [axes](const Applied& op) { return rule(op, axes); });
}

}  // namespace braid
