#include <braid/autograd/ops/broadcast_to.h>

#include <braid/autograd/ops/detail/sum_to.h>

namespace braid {

Var broadcast_to(const Var& x, const Shape& shape) {
  return record("broadcast_to", x.value().broadcast_to(shape), {x},
                [shape = x.shape()](const Var& dy) { return detail::sum_to(dy, shape); });
}

}  // namespace braid
