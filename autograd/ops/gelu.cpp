#include <braid/autograd/ops/gelu.h>

#include <numbers>

#include <braid/autograd/ops/clamp.h>
#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/elementwise.h>
#include <braid/autograd/ops/pow.h>
#include <braid/autograd/ops/sigmoid.h>

namespace braid {
namespace {

constexpr double kScale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;

/// (1 + tanh(u)) / 2 = sigmoid(2 u). Beyond 40 it is 0 or 1, and the cube could overflow.
Var gate(const Var& near) { return sigmoid(kScale * (near + kCubic * near * near * near)); }

Var composed(const Var& x) { return x * gate(clamp(x, -40, 40)); }

/// y'' with s, the gate, and its argument v: s (1 - s) (2 v' + x ((1 - 2 s) v'^2 + v''))
Var second_derivative(const Var& x) {
  const Var near = clamp(x, -40, 40), s = gate(near), slope = kScale + 3 * kScale * kCubic * near * near;
  return s * (1 - s) * (2 * slope + near * ((1 - 2 * s) * slope * slope + 6 * kScale * kCubic * near));
}

/// (2 - x^2) pdf(x)
Var second_derivative_erf(const Var& x) {
  const Var square = pow(clamp(x, -40, 40), 2);  // beyond, the density is 0
  return (2 - square) * (exp(square / -2) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2));
}

/// The derivative of a gelu as an op, by kernels; `second` is its derivative.
auto derivative_by(const char* op, auto function, auto second) {
  const auto vjp = [function](const auto& of) { return function(of).vjp; };
  const auto second_vjp = [function](const auto& of) { return function(of).second_vjp; };
  return [=](const Var& x) {
    return record(
        op, detail::map_kernel(op, vjp, ones(x.shape(), x.dtype()), x.value()), {x},
        [=, x = x.value()](const Tensor& dy) { return detail::map_kernel(op, second_vjp, dy, x); },
        [=](const Applied& at) { return at.dy() * second(at.x()); });
  };
}

}  // namespace

Var gelu(const Var& x) {
  const auto function = [](const auto& of) { return of.gelu; };
  return detail::elementwise("gelu", x, function, composed,
                             derivative_by("gelu_derivative", function, second_derivative));
}

Var gelu_erf(const Var& x) {
  const auto function = [](const auto& of) { return of.gelu_erf; };
  return detail::elementwise("gelu_erf", x, function,
                             derivative_by("gelu_erf_derivative", function, second_derivative_erf));
}

}  // namespace braid
