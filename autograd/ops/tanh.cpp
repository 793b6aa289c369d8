#include <braid/autograd/ops/tanh.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/map_kernel.h>

namespace braid {

Var tanh(const Var& x) {
  Tensor y = detail::map_kernel(
      "tanh", [](const auto& of) { return of.tanh; }, x.value());
  return record(
      "tanh", y, {x},
      [y](const Tensor& dy) {
        auto vjp = [](auto dy, auto y) { return dy * (1 - y * y); };
        return map("tanh", vjp, dy, y);
      },
      [](const Applied& op) { return op.dy() * (1 - op.y() * op.y()); });
}

}  // namespace braid
