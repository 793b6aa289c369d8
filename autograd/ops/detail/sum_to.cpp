#include <braid/autograd/ops/detail/sum_to.h>

#include <braid/autograd/ops/broadcast_to.h>
#include <braid/core/reduce.h>

namespace braid::detail {

Var sum_to(const Var& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return record("sum_to", braid::sum_to(x.value(), shape), {x},
                [shape = x.shape()](const Var& dy) { return broadcast_to(dy, shape); });
}

}  // namespace braid::detail
