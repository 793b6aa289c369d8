#include <braid/autograd/ops/sqrt.h>

#include <cmath>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/core/map.h>

namespace braid {

Var sqrt(const Var& x) {
  auto forward = [](auto x) { return std::sqrt(x); };
  Tensor y = map("sqrt", forward, x.value());
  return record(
      "sqrt", y, {x},
      [y](const Tensor& dy) {
        auto vjp = [](auto dy, auto y) { return dy / (2 * y); };
        return map("sqrt", vjp, dy, y);
      },
      [](const Applied& op) { return op.dy() / (2 * op.y()); });
}

Var rsqrt(const Var& x) {
  auto forward = [](auto x) { return 1 / std::sqrt(x); };
  Tensor y = map("rsqrt", forward, x.value());
  return record(
      "rsqrt", y, {x},
      [y](const Tensor& dy) {
        auto vjp = [](auto dy, auto y) { return dy * y * y * y / -2; };
        return map("rsqrt", vjp, dy, y);
      },
      [](const Applied& op) { return op.dy() * op.y() * op.y() * op.y() / -2; });
}

}  // namespace braid
