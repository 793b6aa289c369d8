#include <braid/autograd/ops/log1p.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var log1p(const Var& x) {
  const auto forward = [](const auto& of) { return of.log1p; };
  const auto vjp = [](const auto& dy, const auto& x) { return dy / (1 + x); };
  return detail::record_of_x("log1p", x, detail::map_kernel("log1p", forward, x.value()), vjp);
}

}  // namespace braid
