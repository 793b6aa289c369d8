#include <braid/autograd/ops/softplus.h>

#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var softplus(const Var& x) {
  return detail::elementwise(
      "softplus", x, [](const auto& of) { return of.softplus; }, [](const auto& of) { return of.softplus_vjp; });
}

}  // namespace braid
