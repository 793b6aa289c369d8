#include <braid/autograd/ops/relu.h>

#include <braid/autograd/ops/where.h>
#include <braid/core/map.h>

namespace braid {

Var relu(const Var& x) {
  // Compared so that NaN is passed on.
  auto forward = [](auto x) { return x <= 0 ? decltype(x){0} : x; };
  Tensor y = map("relu", forward, x.value());
  return record(
      "relu", y, {x},
      [y](const Tensor& dy) {
        auto vjp = [](auto dy, auto y) { return y <= 0 ? decltype(dy){0} : dy; };
        return map("relu", vjp, dy, y);
      },
      [](const Applied& op) {
        auto off = [](auto y) { return y <= 0; };
        return where(map_truth("relu", off, op.y().value()), 0.0, op.dy());
      });
}

}  // namespace braid
