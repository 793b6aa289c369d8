#include <braid/autograd/ops/sigmoid.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/map_kernel.h>

namespace braid {

Var sigmoid(const Var& x) {
  Tensor y = detail::map_kernel(
      "sigmoid", [](const auto& of) { return of.sigmoid; }, x.value());
  return record(
      "sigmoid", y, {x},
      [y](const Tensor& dy) {
        auto vjp = [](auto dy, auto y) { return dy * y * (1 - y); };
        return map("sigmoid", vjp, dy, y);
      },
      [](const Applied& op) { return op.dy() * op.y() * (1 - op.y()); });
}

}  // namespace braid
