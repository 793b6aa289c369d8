#include <braid/autograd/ops/softmax.h>

#include <braid/autograd/kernels/softmax.h>
#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

using kernels::In, kernels::Out, kernels::RowsAlong;

/// A tensor shaped like the inputs, computed row by row with the kernel that `choose` takes from the table. Returns
/// early for tensors without elements: [2^59, 0] has many rows.
Tensor map_rows(const char* op, const RowsAlong& along, auto choose, const auto&... inputs) {
  const auto run = [&](const Tensor& first, const auto&... rest) {
    Tensor y(first.shape(), first.dtype());
    kernels::softmax_kernels().dispatch(op, y.dtype(), [&](const auto& kernels) {
      if (y.numel() > 0) choose(kernels)(along, In{first}, In{rest}..., Out{y});
    });
    return along.restore(y);
  };
  return run(along.lay_out(inputs)...);
}

Var composed_softmax(const Var& x, const Axes& axes) {
  const Var e = exp(x - detail::largest(x.value(), axes));
  return e / sum(e, axes, true);
}

Var composed_log_softmax(const Var& x, const Axes& axes) {
  const Var shifted = x - detail::largest(x.value(), axes);
  return shifted - log(sum(exp(shifted), axes, true));
}

/// The vjp of softmax or log_softmax as an op; second(u, dy, y, axes) returns those of dy and y for u, made of ops.
Var vjp_over_rows(const char* op, const Applied& at, const RowsAlong& along, const Axes& axes, auto vjp, auto second) {
  const Tensor dy = at.dy().value(), y = at.y().value();
  return record(
      op, map_rows(op, along, vjp, dy, y), {at.dy(), at.y()}, [=](const Tensor& u) { return second(u, dy, y, axes); },
      [=](const Applied& of) { return second(of.dy(), of.x(0), of.x(1), axes); });
}

/// softmax or log_softmax, whose vjp reads y.
Var over_rows(const char* op, const Var& x, const Axes& axes, auto forward, auto vjp, auto composed, auto second) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const Var& v) { return over_rows(op, v, axes, forward, vjp, composed, second); }, x);
  const RowsAlong along(op, x.shape(), axes);
  check_floating(op, x.dtype());
  if (Composed::active(Composed::Ops::with_rule)) return composed(x, axes);
  const Tensor y = map_rows(op, along, forward, x.value());
  return record(
      op, y, {x}, [=](const Tensor& dy) { return map_rows(op, along, vjp, dy, y); },
      [=](const Applied& at) { return vjp_over_rows(op, at, along, axes, vjp, second); });
}

}  // namespace

Var softmax(const Var& x, const Axes& axes) {
  return over_rows(
      "softmax", x, axes, [](auto of) { return of.softmax; }, [](auto of) { return of.softmax_vjp; }, composed_softmax,
      [](const Var& u, const Var& dy, const Var& y, const Axes& axes) {
        const auto mean = [&](const Var& v) { return sum(v * y, axes, true); };
        const Var mean_u = mean(u);
        return std::array{y * (u - mean_u), u * (dy - mean(dy)) - dy * mean_u};
      });
}

Var log_softmax(const Var& x, const Axes& axes) {
  return over_rows(
      "log_softmax", x, axes, [](auto of) { return of.log_softmax; }, [](auto of) { return of.log_softmax_vjp; },
      composed_log_softmax,
      [](const Var& u, const Var& dy, const Var& y, const Axes& axes) {
        const Var share = exp(y) * u;
        return std::array{u - sum(share, axes, true), -share * sum(dy, axes, true)};
      });
}

}  // namespace braid
