#include <braid/autograd/ops/linear.h>

#include <optional>

#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/core/products/matmul.h>

namespace braid {
namespace {

using detail::as_rows;

/// dx = dy weight, dweight = dy^T x, dbias = the sum of dy's rows. For activations of bf16, parameters of f32 are
/// rounded and their gradients are not.
std::vector<Tensor> vjp(const Tensor& dy, const Tensor& x, const Tensor& weight, std::optional<DType> bias,
                        const Needs& needs) {
  const Tensor rows = as_rows(dy);
  std::vector dxs{needs[0] ? matrix_product(rows, weight.to(dy.dtype())).reshape(x.shape()) : Tensor(),
                  needs[1] ? matrix_product(rows.transpose(), as_rows(x), "linear", weight.dtype()) : Tensor()};
  if (bias) dxs.push_back(needs[2] ? reduce_sum(rows, {0}, false, "linear", *bias) : Tensor());
  return dxs;
}

/// The same as variables, for parameters in the dtype of x.
std::vector<Var> rule(const Applied& op) {
  const Var &x = op.x(0), &weight = op.x(1), dy = as_rows(op.dy());
  std::vector dxs{op.needs[0] ? reshape(matmul(dy, weight), x.shape()) : Var(),
                  op.needs[1] ? matmul(transpose(dy), as_rows(x)) : Var()};
  if (op.inputs.size() == 3) dxs.push_back(op.needs[2] ? sum(dy, {0}) : Var());
  return dxs;
}

Var composed(const Var& x, const Var& weight, const Var& bias) {
  const Var y = reshape(matmul(as_rows(x), transpose(weight)), x.shape().with(-1, weight.size(0)));
  return bias.value().defined() ? y + bias : y;
}

}  // namespace

Var linear(const Var& x, const Var& weight, const Var& bias) {
  const bool biased = bias.value().defined();
  check_parameter_dtype("linear", x.value(), weight.value());
  check_shape(weight.rank() == 2, "linear: weight must have shape [out, in] but has {}", weight.shape());
  check_shape(x.rank() >= 1 && x.size(-1) == weight.size(1),
              "linear: the last axis of x must have size {} to match weight {} but x has shape {}", weight.size(1),
              weight.shape(), x.shape());
  if (biased) {
    check_parameter_dtype("linear", x.value(), bias.value());
    check_shape(bias.shape() == Shape{weight.size(0)}, "linear: bias must have shape {} to match weight {} but has {}",
                Shape{weight.size(0)}, weight.shape(), bias.shape());
  }
  const std::optional<DType> bias_dtype = biased ? std::optional(bias.dtype()) : std::nullopt;
  const bool one_dtype = x.dtype() == weight.dtype() && bias_dtype.value_or(x.dtype()) == x.dtype();
  const auto has_rule = one_dtype ? Composed::Ops::with_rule : Composed::Ops::all;
  if (Composed::active(has_rule)) return detail::in_f32(composed, x, weight, bias);
  const Tensor rows = as_rows(x.value()), columns = weight.value().to(x.dtype()).transpose();
  const Tensor y = biased ? product_plus_row(rows, columns, bias.value().to(compute_dtype(x.dtype())), "linear")
                          : matrix_product(rows, columns, "linear");
  std::vector<Var> inputs{x, weight};
  if (biased) inputs.push_back(bias);
  return record(
      "linear", y.reshape(x.shape().with(-1, weight.size(0))), inputs,
      [x = x.value(), weight = weight.value(), bias_dtype](const Tensor& dy, const Needs& needs) {
        return vjp(dy, x, weight, bias_dtype, needs);
      },
      rule);
}

}  // namespace braid
