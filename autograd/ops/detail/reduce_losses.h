#pragma once
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/reduction.h>
#include <braid/autograd/ops/sum.h>

namespace braid::detail {

/// The divisor of the reduced losses [B, ...]: for the mean `count`, their number or sum of weights; 1 instead of 0.
inline double divisor(Reduction reduction, const Shape& losses, double count) {
  if (reduction == Reduction::batch_mean) count = losses.rank() == 0 ? 1 : static_cast<double>(losses[0]);
  return reduction == Reduction::sum || reduction == Reduction::none || count == 0 ? 1 : count;
}

/// Losses [B, ...], reduced; `count` is their number unless given.
inline Var reduce_losses(const Var& losses, Reduction reduction, std::optional<double> count = {}) {
  const double terms = count.value_or(static_cast<double>(losses.numel()));
  return reduction == Reduction::none ? losses : sum(losses) / divisor(reduction, losses.shape(), terms);
}

}  // namespace braid::detail
