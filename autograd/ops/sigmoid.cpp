#include <braid/autograd/ops/sigmoid.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var sigmoid(const Var& x) {
  const auto forward = [](const auto& of) { return of.sigmoid; };
  const auto vjp = [](const auto& dy, const auto& y) { return dy * y * (1 - y); };
  return detail::record_of_y("sigmoid", x, detail::map_kernel("sigmoid", forward, x.value()), vjp);
}

}  // namespace braid
