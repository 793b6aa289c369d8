#include <braid/autograd/ops/broadcast_to.h>

#include <braid/core/reduce.h>

namespace braid {

Var Var::broadcast_to(const Shape& shape) const {
  return record("broadcast_to", value_.broadcast_to(shape), {*this},
                [shape = value_.shape()](const Var& dy) { return detail::sum_to(dy, shape); });
}

namespace detail {

Var sum_to(const Var& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return record("sum_to", braid::sum_to(x.value(), shape), {x},
                [shape = x.shape()](const Var& dy) { return dy.broadcast_to(shape); });
}

}  // namespace detail
}  // namespace braid
