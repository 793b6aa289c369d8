#include <braid/autograd/ops/log.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/map_kernel.h>

namespace braid {

Var log(const Var& x) {
  return record(
      "log",
      detail::map_kernel(
          "log", [](const auto& of) { return of.log; }, x.value()),
      {x},
      [x = x.value()](const Tensor& dy) {
        auto vjp = [](auto dy, auto x) { return dy / x; };
        return map("log", vjp, dy, x);
      },
      [](const Applied& op) { return op.dy() / op.x(); });
}

}  // namespace braid
