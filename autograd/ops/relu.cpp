#include <braid/autograd/ops/relu.h>

#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var relu(const Var& x) {
  // Compared so that NaN is passed on.
  auto forward = [](auto x) { return x <= 0 ? decltype(x){0} : x; };
  const Tensor y = map("relu", forward, x.value());
  return detail::record_passing("relu", x, y, y, [](auto y) { return !(y <= 0); });
}

}  // namespace braid
