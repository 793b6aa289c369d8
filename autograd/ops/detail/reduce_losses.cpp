#include <braid/autograd/ops/detail/reduce_losses.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sum.h>

namespace braid::detail {

double divisor(Reduction reduction, const Shape& losses, double count) {
  if (reduction == Reduction::batch_mean) count = losses.rank() == 0 ? 1 : static_cast<double>(losses[0]);
  return reduction == Reduction::sum || reduction == Reduction::none || count == 0 ? 1 : count;
}

Var reduce_losses(const Var& losses, Reduction reduction, double count) {
  return reduction == Reduction::none ? losses : sum(losses) / divisor(reduction, losses.shape(), count);
}

}  // namespace braid::detail
