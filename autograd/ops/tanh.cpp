#include <braid/autograd/ops/tanh.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var tanh(const Var& x) {
  const auto forward = [](const auto& of) { return of.tanh; };
  const auto vjp = [](const auto& dy, const auto& y) { return dy * (1 - y * y); };
  return detail::record_of_y("tanh", x, detail::map_kernel("tanh", forward, x.value()), vjp);
}

}  // namespace braid
