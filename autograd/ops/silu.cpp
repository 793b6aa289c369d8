#include <braid/autograd/ops/silu.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/elementwise.h>
#include <braid/autograd/ops/sigmoid.h>

namespace braid {

Var silu(const Var& x) {
  return detail::elementwise(
      "silu", x, [](const auto& of) { return of.silu; }, [](const Var& v) { return v * sigmoid(v); },
      [](const Var& v) {
        const Var s = sigmoid(v);
        return s * (1 + v * (1 - s));
      });
}

}  // namespace braid
