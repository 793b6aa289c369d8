#include <braid/autograd/ops/log.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var log(const Var& x) {
  const auto forward = [](const auto& of) { return of.log; };
  const auto vjp = [](const auto& dy, const auto& x) { return dy / x; };
  return detail::record_of_x("log", x, detail::map_kernel("log", forward, x.value()), vjp);
}

}  // namespace braid
