#include <braid/autograd/ops/log1p.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/map_kernel.h>

namespace braid {

Var log1p(const Var& x) {
  return record(
      "log1p",
      detail::map_kernel(
          "log1p", [](const auto& of) { return of.log1p; }, x.value()),
      {x},
      [x = x.value()](const Tensor& dy) {
        auto vjp = [](auto dy, auto x) { return dy / (1 + x); };
        return map("log1p", vjp, dy, x);
      },
      [](const Applied& op) { return op.dy() / (1 + op.x()); });
}

}  // namespace braid
