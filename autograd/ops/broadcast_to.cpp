#include <braid/autograd/ops/broadcast_to.h>

#include <braid/core/reduce.h>

namespace braid {

Var broadcast_to(const Var& x, const Shape& shape) {
  return record("broadcast_to", x.value().broadcast_to(shape), {x},
                [shape = x.shape()](const Var& dy) { return detail::sum_to(dy, shape); });
}

Var Var::broadcast_to(const Shape& shape) const { return braid::broadcast_to(*this, shape); }

namespace detail {

Var sum_to(const Var& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return record("sum_to", braid::sum_to(x.value(), shape), {x},
                [shape = x.shape()](const Var& dy) { return broadcast_to(dy, shape); });
}

}  // namespace detail
}  // namespace braid
