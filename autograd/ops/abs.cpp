#include <braid/autograd/ops/abs.h>

#include <cmath>

#include <braid/core/map.h>

namespace braid {

Var abs(const Var& x) {
  auto forward = [](auto x) { return std::abs(x); };
  Tensor y = map("abs", forward, x.value());
  return record("abs", std::move(y), {x}, [x = x.value()](const Tensor& dy) {
    auto vjp = [](auto dy, auto x) { return x < 0 ? -dy : x == 0 ? decltype(dy){0} : dy; };
    return map("abs", vjp, dy, x);
  });
}

}  // namespace braid
