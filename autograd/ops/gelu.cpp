#include <braid/autograd/ops/gelu.h>

#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var gelu(const Var& x) {
  return detail::elementwise(
      "gelu", x, [](const auto& of) { return of.gelu; }, [](const auto& of) { return of.gelu_vjp; });
}

Var gelu_erf(const Var& x) {
  return detail::elementwise(
      "gelu_erf", x, [](const auto& of) { return of.gelu_erf; }, [](const auto& of) { return of.gelu_erf_vjp; });
}

}  // namespace braid
