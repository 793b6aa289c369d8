#include <braid/autograd/ops/linear.h>

#include <braid/core/products/matmul.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

void check_inputs(const Tensor& x, const Tensor& weight) {
  check_parameter_dtype("linear", x, weight);
  check_shape(weight.rank() == 2, "linear: weight must have shape [out, in] but has {}", weight.shape());
  check_shape(x.rank() >= 1 && x.size(-1) == weight.size(1),
              "linear: the last axis of x must have size {} to match weight {} but x has shape {}", weight.size(1),
              weight.shape(), x.shape());
}

/// x as a matrix of rows: [..., n] -> [rows, n].
Tensor as_rows(const Tensor& x) { return x.reshape({x.shape().axes(0, x.rank() - 1).numel(), x.size(-1)}); }

// dx = dy weight, dweight = dy^T x, dbias = the sum of dy's rows. For activations of bf16, parameters of f32 are
// rounded and their gradients are not.
Tensor vjp_x(const Tensor& dy, const Tensor& weight, const Shape& x) {
  return matrix_product(as_rows(dy), weight.to(dy.dtype())).reshape(x);
}

Tensor vjp_weight(const Tensor& dy, const Tensor& x, DType dtype) {
  return matrix_product(as_rows(dy).transpose(), as_rows(x), "linear", dtype);
}

Tensor vjp_bias(const Tensor& dy, DType dtype) { return reduce_sum(as_rows(dy), {0}, false, "linear", dtype); }

}  // namespace

Var linear(const Var& x, const Var& weight) {
  check_inputs(x.value(), weight.value());
  const Tensor y = matrix_product(as_rows(x.value()), weight.value().to(x.dtype()).transpose(), "linear");
  return record("linear", y.reshape(x.shape().with(-1, weight.size(0))), {x, weight},
                [x = x.value(), weight = weight.value()](const Tensor& dy, const Needs& needs) {
                  return std::vector{needs[0] ? vjp_x(dy, weight, x.shape()) : Tensor(),
                                     needs[1] ? vjp_weight(dy, x, weight.dtype()) : Tensor()};
                });
}

Var linear(const Var& x, const Var& weight, const Var& bias) {
  check_inputs(x.value(), weight.value());
  check_same_dtype("linear", weight.value(), bias.value());
  check_shape(bias.shape() == Shape{weight.size(0)}, "linear: bias must have shape {} to match weight {} but has {}",
              Shape{weight.size(0)}, weight.shape(), bias.shape());
  const Tensor rows = as_rows(x.value());
  const Tensor y = product_plus_row(rows, weight.value().to(x.dtype()).transpose(),
                                    bias.value().to(compute_dtype(x.dtype())), "linear");
  return record("linear", y.reshape(x.shape().with(-1, weight.size(0))), {x, weight, bias},
                [x = x.value(), weight = weight.value()](const Tensor& dy, const Needs& needs) {
                  return std::vector{needs[0] ? vjp_x(dy, weight, x.shape()) : Tensor(),
                                     needs[1] ? vjp_weight(dy, x, weight.dtype()) : Tensor(),
                                     needs[2] ? vjp_bias(dy, weight.dtype()) : Tensor()};
                });
}

}  // namespace braid
