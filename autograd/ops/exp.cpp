#include <braid/autograd/ops/exp.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var exp(const Var& x) {
  const auto forward = [](const auto& of) { return of.exp; };
  const auto vjp = [](const auto& dy, const auto& y) { return dy * y; };
  return detail::record_of_y("exp", x, detail::map_kernel("exp", forward, x.value()), vjp);
}

}  // namespace braid
