#include <braid/autograd/ops/gelu.h>

#include <numbers>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/clamp.h>
#include <braid/autograd/ops/detail/elementwise.h>
#include <braid/autograd/ops/exp.h>
#include <braid/autograd/ops/pow.h>
#include <braid/autograd/ops/sigmoid.h>

namespace braid {
namespace {

constexpr double kScale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;

/// (1 + tanh(u)) / 2 = sigmoid(2 u). Beyond 100 it is 0 or 1, and the cube could overflow.
Var gate(const Var& near) { return sigmoid(kScale * (near + kCubic * near * near * near)); }

Var composed(const Var& x) { return x * gate(clamp(x, -100, 100)); }

Var derivative(const Var& x) {
  const Var near = clamp(x, -100, 100), s = gate(near);
  return s * (1 + kScale * near * (1 - s) * (1 + 3 * kCubic * near * near));
}

/// Phi(x) + x phi(x) with the normal distribution Phi and its density phi; its derivative is (2 - x^2) phi(x).
Var erf_derivative(const Var& x) {
  const auto second = [](const Var& x) {
    const Var square = pow(clamp(x, -40, 40), 2);  // beyond, phi is 0
    return (2 - square) * (exp(square / -2) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2));
  };
  const auto times = [](const auto& of) { return of.gelu_erf_vjp; };
  const Tensor y = detail::map_kernel("gelu_erf", times, ones(x.shape(), x.dtype()), x.value());
  return record(
      "gelu_erf", y, {x}, [second, x = x.value()](const Tensor& dy) { return dy * second(x); },
      [second](const Applied& op) { return op.dy() * second(op.x()); });
}

}  // namespace

Var gelu(const Var& x) {
  return detail::elementwise(
      "gelu", x, [](const auto& of) { return of.gelu; }, [](const auto& of) { return of.gelu_vjp; }, composed,
      derivative);
}

Var gelu_erf(const Var& x) {
  return detail::elementwise(
      "gelu_erf", x, [](const auto& of) { return of.gelu_erf; }, [](const auto& of) { return of.gelu_erf_vjp; },
      erf_derivative);
}

}  // namespace braid
