#include <braid/autograd/ops/layer_norm.h>

#include <tuple>

#include <braid/autograd/kernels/normalization.h>
#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

using kernels::In, kernels::Out, kernels::Rows;

/// y [..., C] and, for the vjp, mean and rstd [rows].
std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const Rows rows(x.shape());
  Tensor y(x.shape(), x.dtype()), mean({rows.count}, compute_dtype(x.dtype())), rstd({rows.count}, mean.dtype());
  kernels::normalization_kernels().dispatch("layer_norm", x.dtype(), [&](const auto& kernel) {
    kernel.layer_norm({rows, In{x}, In{weight}, In{bias}}, eps, Out{y}, Out{mean}, Out{rstd});
  });
  return {y, mean, rstd};
}

/// dweight and dbias are summed in each block of rows, then over the blocks in order.
std::vector<Tensor> backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                             const Tensor& rstd, DType parameters) {
  const Rows rows(x.shape());
  Tensor dx(x.shape(), x.dtype()), dweights({rows.blocks(), rows.width}, mean.dtype());
  Tensor dbiases(dweights.shape(), mean.dtype());
  kernels::normalization_kernels().dispatch("layer_norm", x.dtype(), [&](const auto& kernel) {
    kernel.layer_norm_vjp({rows, In{x}, In{weight}}, In{mean}, In{rstd}, In{dy},
                          {.dx = Out{dx}, .dweight = Out{dweights}, .dbias = Out{dbiases}});
  });
  return {dx, reduce_sum(dweights, {0}).to(parameters), reduce_sum(dbiases, {0}).to(parameters)};
}

Var composed(const Var& x, const Var& weight, const Var& bias, double eps) {
  const Var centered = x - mean(x, -1, true);
  return centered * rsqrt(mean(centered * centered, -1, true) + eps) * weight + bias;
}

void check_parameter(const char* name, const Var& x, const Var& parameter) {
  check_parameter_dtype("layer_norm", x.value(), parameter.value());
  check_shape(parameter.shape() == Shape{x.size(-1)}, "layer_norm: {} must have shape [{}] to match x {} but has {}",
              name, x.size(-1), x.shape(), parameter.shape());
}

}  // namespace

Var layer_norm(const Var& x, const Var& weight, const Var& bias, double eps) {
  check_shape(x.rank() >= 1, "layer_norm: x must have at least one axis but has shape {}", x.shape());
  check_parameter("weight", x, weight);
  check_parameter("bias", x, bias);
  check_same_dtype("layer_norm", weight.value(), bias.value());
  if (Composed::active())
    return detail::in_f32([=](const auto&... wide) { return composed(wide..., eps); }, x, weight, bias);
  const auto parameter = [&](const Var& p) { return p.value().to(compute_dtype(x.dtype())).contiguous(); };
  const Tensor rows = x.value().contiguous(), scale = parameter(weight);
  auto [y, mean, rstd] = forward(rows, scale, parameter(bias), eps);
  return record("layer_norm", y, {x, weight, bias},
                [x = rows, weight = scale, mean = mean, rstd = rstd, dtype = weight.dtype()](const Tensor& dy) {
                  return backward(dy.contiguous(), x, weight, mean, rstd, dtype);
                });
}

Var layer_norm(const Var& x, double eps) {
  check_shape(x.rank() >= 1, "layer_norm: x must have at least one axis but has shape {}", x.shape());
  const Shape weight{x.size(-1)};
  return layer_norm(x, ones(weight, compute_dtype(x.dtype())), zeros(weight, compute_dtype(x.dtype())), eps);
}

}  // namespace braid
