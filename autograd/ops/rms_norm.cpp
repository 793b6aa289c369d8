#include <braid/autograd/ops/rms_norm.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/kernels/normalization.h>
#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

using kernels::In, kernels::Out, kernels::Rows;

/// y [..., C] and rstd [rows], which the vjp needs.
std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& weight, double eps) {
  const Rows rows(x.shape());
  Tensor y(x.shape(), x.dtype()), rstd({rows.count}, compute_dtype(x.dtype()));
  kernels::normalization_kernels().dispatch("rms_norm", x.dtype(), [&](const auto& kernel) {
    kernel.rms_norm({rows, In{x}, In{weight}}, eps, Out{y}, Out{rstd});
  });
  return {y, rstd};
}

/// dx [..., C] and dweight [C], which is summed in each block of rows, then over the blocks in order.
std::pair<Tensor, Tensor> backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd) {
  const Rows rows(x.shape());
  Tensor dx(x.shape(), x.dtype()), dweights({rows.blocks(), rows.width}, rstd.dtype());
  kernels::normalization_kernels().dispatch("rms_norm", x.dtype(), [&](const auto& kernel) {
    kernel.rms_norm_vjp({rows, In{x}, In{weight}}, In{rstd}, In{dy}, Out{dx}, Out{dweights});
  });
  return {dx, reduce_sum(dweights, {0})};
}

Var composed(const Var& x, const Var& weight, double eps) { return x * rsqrt(mean(x * x, -1, true) + eps) * weight; }

/// The cotangents of x, weight and dy for those of dx and dweight, which may be undefined.
std::vector<Tensor> second_backward(std::span<const Tensor> of, const Tensor& dy, const Tensor& x, const Tensor& weight,
                                    const Tensor& rstd) {
  const Rows rows(x.shape());
  Tensor dx(x.shape(), x.dtype()), ddy(x.shape(), x.dtype()), dweights({rows.blocks(), rows.width}, rstd.dtype());
  const Tensor a = (of[0].defined() ? of[0] : zeros(x.shape(), x.dtype())).contiguous();
  const Tensor b = (of[1].defined() ? of[1] : zeros(weight.shape(), rstd.dtype())).contiguous();
  kernels::normalization_kernels().dispatch("rms_norm", x.dtype(), [&](const auto& kernel) {
    kernel.rms_norm_second_vjp({rows, In{x}, In{weight}}, {.rstd = In{rstd},
                                                           .dy = In{dy},
                                                           .a = In{a},
                                                           .b = In{b},
                                                           .dx = Out{dx},
                                                           .ddy = Out{ddy},
                                                           .dweight = Out{dweights}});
  });
  return {dx, reduce_sum(dweights, {0}), ddy};
}

/// The vjp as an op on x, weight and dy.
std::vector<Var> rule(const Applied& op, double eps, const Tensor& rstd) {
  const Tensor x = op.x(0).value().contiguous(), weight = op.x(1).value().contiguous();
  const Tensor dy = op.dy().value().contiguous();
  const auto [dx, dweight] = backward(dy, x, weight, rstd);
  const auto compose = [eps](std::span<const Var> in) { return composed(in[0], in[1], eps); };
  return record(
      "rms_norm_vjp", {dx, dweight}, {op.x(0), op.x(1), op.dy()},
      [=](std::span<const Tensor> dys, const Needs&) { return second_backward(dys, dy, x, weight, rstd); }, {},
      detail::rule_of_vjp("rms_norm_vjp", compose));
}

}  // namespace

Var rms_norm(const Var& x, const Var& weight, double eps) {
  check_shape(x.rank() >= 1, "rms_norm: x must have at least one axis but has shape {}", x.shape());
  check_parameter_dtype("rms_norm", x.value(), weight.value());
  check_shape(weight.shape() == Shape{x.size(-1)}, "rms_norm: weight must have shape [{}] to match x {} but has {}",
              x.size(-1), x.shape(), weight.shape());
  if (Composed::active(x.dtype() == DType::bf16 ? Composed::Ops::all : Composed::Ops::with_rule))
    return detail::in_f32([=](const auto&... wide) { return composed(wide..., eps); }, x, weight);
  const Tensor rows = x.value().contiguous(), scale = weight.value().to(compute_dtype(x.dtype())).contiguous();
  auto [y, rstd] = forward(rows, scale, eps);
  return record(
      "rms_norm", y, {x, weight},
      [x = rows, weight = scale, rstd = rstd, dtype = weight.dtype()](const Tensor& dy) {
        const auto [dx, dweight] = backward(dy.contiguous(), x, weight, rstd);
        return std::vector{dx, dweight.to(dtype)};
      },
      [eps, rstd = rstd](const Applied& op) { return rule(op, eps, rstd); });
}

Var rms_norm(const Var& x, double eps) {
  check_shape(x.rank() >= 1, "rms_norm: x must have at least one axis but has shape {}", x.shape());
  return rms_norm(x, Var(ones({x.size(-1)}, compute_dtype(x.dtype()))), eps);
}

}  // namespace braid
