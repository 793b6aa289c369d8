#include <braid/autograd/ops/masked_fill.h>

#include <braid/autograd/ops/where.h>

namespace braid {

Var masked_fill(const Var& x, const Tensor& mask, double value) {
  check_shape(broadcast_shapes("masked_fill", x.shape(), mask.shape()) == x.shape(),
              "masked_fill: mask {} does not broadcast to x {}", mask.shape(), x.shape());
  const Tensor y = where(mask, scalar(value, x.dtype(), "masked_fill"), x.value());
  return record("masked_fill", y, {x}, [mask](const Var& dy) { return masked_fill(dy, mask, 0); });
}

}  // namespace braid
