#include <braid/autograd/ops/sin.h>

#include <cmath>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/core/map.h>

namespace braid {

// The standard library's: Highway's are for arguments below 39000 only.

Var sin(const Var& x) {
  auto forward = [](auto x) { return std::sin(x); };
  return record(
      "sin", map("sin", forward, x.value()), {x},
      [x = x.value()](const Tensor& dy) {
        auto vjp = [](auto dy, auto x) { return dy * std::cos(x); };
        return map("sin", vjp, dy, x);
      },
      [](const Applied& op) { return op.dy() * cos(op.x()); });
}

Var cos(const Var& x) {
  auto forward = [](auto x) { return std::cos(x); };
  return record(
      "cos", map("cos", forward, x.value()), {x},
      [x = x.value()](const Tensor& dy) {
        auto vjp = [](auto dy, auto x) { return -dy * std::sin(x); };
        return map("cos", vjp, dy, x);
      },
      [](const Applied& op) { return -op.dy() * sin(op.x()); });
}

}  // namespace braid
