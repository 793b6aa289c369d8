#include <braid/autograd/ops/abs.h>

#include <cmath>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sign.h>
#include <braid/autograd/ops/where.h>
#include <braid/core/map.h>

namespace braid {

Var abs(const Var& x) {
  auto forward = []<class T>(T x) {
    if constexpr (std::is_integral_v<T>)
      return x < 0 ? static_cast<T>(0U - static_cast<std::uint32_t>(x)) : x;  // the smallest has no counterpart
    else
      return std::abs(x);
  };
  return record(
      "abs", map_any("abs", forward, x.value()), {x},
      [x = x.value()](const Tensor& dy) {
        auto vjp = [](auto dy, auto x) { return x < 0 ? -dy : x == 0 ? decltype(dy){0} : dy; };
        return map("abs", vjp, dy, x);
      },
      [](const Applied& op) {
        const Tensor signs = sign(op.x());
        return where(signs, op.dy() * signs, 0.0);
      });
}

}  // namespace braid
