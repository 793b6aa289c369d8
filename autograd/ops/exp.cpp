#include <braid/autograd/ops/exp.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/map_kernel.h>

namespace braid {

Var exp(const Var& x) {
  Tensor y = detail::map_kernel(
      "exp", [](const auto& of) { return of.exp; }, x.value());
  return record(
      "exp", y, {x},
      [y](const Tensor& dy) {
        auto vjp = [](auto dy, auto y) { return dy * y; };
        return map("exp", vjp, dy, y);
      },
      [](const Applied& op) { return op.dy() * op.y(); });
}

}  // namespace braid
