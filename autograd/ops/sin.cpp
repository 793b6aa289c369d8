#include <braid/autograd/ops/sin.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var sin(const Var& x) {
  return detail::elementwise(
      "sin", x, [](const auto& of) { return of.sin; }, [](const Var& x) { return cos(x); });
}

Var cos(const Var& x) {
  return detail::elementwise(
      "cos", x, [](const auto& of) { return of.cos; }, [](const Var& x) { return -sin(x); });
}

}  // namespace braid
