#include <braid/mhc/ops/sinkhorn.h>

#include <braid/autograd/ops/reshape.h>
#include <braid/mhc/mixings/mixing.h>

namespace braid::mhc {

Var sinkhorn_knopp(const Var& logits, int iterations, Marginal exact) {
  const Shape& shape = logits.shape();
  check_shape(shape.rank() >= 2 && shape[-1] == shape[-2] && shape[-1] >= 1,
              "sinkhorn_knopp: logits must have shape [..., n, n] with n >= 1 but has {}", shape);
  check_value(iterations >= 1, "sinkhorn_knopp: iterations must be >= 1 but is {}", iterations);
  dispatch_float("sinkhorn_knopp", logits.dtype(), [](auto) {});
  const std::int64_t n = shape[-1];
  const Mixing mixing("sinkhorn", n, {.iterations = iterations, .exact = exact});
  return mixing(reshape(logits, shape.axes(0, shape.rank() - 2).concat({n * n})));
}

}  // namespace braid::mhc
