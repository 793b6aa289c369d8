#include <braid/autograd/ops/expm1.h>

#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var expm1(const Var& x) {
  return detail::elementwise(
      "expm1", x, [](const auto& of) { return of.expm1; }, [](const Var& x) { return exp(x); });
}

}  // namespace braid
