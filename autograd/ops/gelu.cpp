#include <braid/autograd/ops/gelu.h>

#include <numbers>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/clamp.h>
#include <braid/autograd/ops/detail/elementwise.h>
#include <braid/autograd/ops/sigmoid.h>

namespace braid {
namespace {

/// (1 + tanh(u)) / 2 = sigmoid(2 u). Beyond 10 it is 0 or 1, and the cube could overflow.
Var composed(const Var& x) {
  const Var near = clamp(x, -10, 10);
  return x * sigmoid(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (near + 0.044715 * near * near * near));
}

}  // namespace

Var gelu(const Var& x) {
  return detail::elementwise(
      "gelu", x, [](const auto& of) { return of.gelu; }, [](const auto& of) { return of.gelu_vjp; }, composed);
}

Var gelu_erf(const Var& x) {
  return detail::elementwise(
      "gelu_erf", x, [](const auto& of) { return of.gelu_erf; }, [](const auto& of) { return of.gelu_erf_vjp; });
}

}  // namespace braid
