#include <braid/autograd/ops/broadcast_to.h>

#include <braid/core/reduce.h>

namespace braid {

Var broadcast_to(const Var& x, const Shape& shape) {
  return record("broadcast_to", x.value().broadcast_to(shape), {x},
                [shape = x.shape()](const Tensor& dy) { return sum_to(dy, shape); });
}

}  // namespace braid
