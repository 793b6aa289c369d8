#include <braid/autograd/ops/rms_norm.h>

#include <braid/autograd/kernels/rms_norm.h>
#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

using kernels::In, kernels::Out, kernels::Rows;

struct Normalized {
  Tensor y;     // [..., C]
  Tensor rstd;  // [rows]
};

Normalized forward(const Tensor& x, const Tensor& weight, double eps) {
  const Rows rows(x.shape());
  Tensor y(x.shape(), x.dtype()), rstd({rows.count}, compute_dtype(x.dtype()));
  kernels::rms_norm_kernels().dispatch("rms_norm", x.dtype(), [&](const auto& kernel) {
    kernel.forward({.rows = rows, .x = In{x}, .weight = In{weight}}, eps, Out{y}, Out{rstd});
  });
  return {y, rstd};
}

struct Cotangents {
  Tensor dx;       // [..., C]
  Tensor dweight;  // [C]
};

/// dweight is summed in each block of rows, then over the blocks in order.
Cotangents backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd) {
  const Rows rows(x.shape());
  Tensor dx(x.shape(), x.dtype()), dweights({rows.blocks(), rows.width}, rstd.dtype());
  kernels::rms_norm_kernels().dispatch("rms_norm", x.dtype(), [&](const auto& kernel) {
    kernel.vjp({.rows = rows, .x = In{x}, .weight = In{weight}}, In{rstd}, In{dy}, Out{dx}, Out{dweights});
  });
  return {dx, reduce_sum(dweights, {0})};
}

Var composed(const Var& x, const Var& weight, double eps) { return x * rsqrt(mean(x * x, -1, true) + eps) * weight; }

}  // namespace

Var rms_norm(const Var& x, const Var& weight, double eps) {
  check_shape(x.rank() >= 1, "rms_norm: x must have at least one axis but has shape {}", x.shape());
  check_parameter_dtype("rms_norm", x.value(), weight.value());
  check_shape(weight.shape() == Shape{x.size(-1)}, "rms_norm: weight must have shape [{}] to match x {} but has {}",
              x.size(-1), x.shape(), weight.shape());
  if (Composed::active()) return detail::in_f32([=](const auto&... wide) { return composed(wide..., eps); }, x, weight);
  const Tensor rows = x.value().contiguous(), scale = weight.value().to(compute_dtype(x.dtype())).contiguous();
  auto [y, rstd] = forward(rows, scale, eps);
  return record("rms_norm", y, {x, weight},
                [x = rows, weight = scale, rstd = rstd, dtype = weight.dtype()](const Tensor& dy) {
                  const auto [dx, dweight] = backward(dy.contiguous(), x, weight, rstd);
                  return std::vector{dx, dweight.to(dtype)};
                });
}

Var rms_norm(const Var& x, double eps) {
  check_shape(x.rank() >= 1, "rms_norm: x must have at least one axis but has shape {}", x.shape());
  return rms_norm(x, Var(ones({x.size(-1)}, compute_dtype(x.dtype()))), eps);
}

}  // namespace braid
