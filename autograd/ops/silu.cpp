#include <braid/autograd/ops/silu.h>

#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var silu(const Var& x) {
  return detail::elementwise(
      "silu", x, [](const auto& of) { return of.silu; }, [](const auto& of) { return of.silu_vjp; });
}

}  // namespace braid
