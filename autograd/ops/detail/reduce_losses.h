#pragma once
#include <braid/autograd/ops/reduction.h>
#include <braid/autograd/tape.h>

namespace braid::detail {

/// The divisor of the reduced losses [B, ...]: for the mean `count`, their number or the sum of their weights; 1
/// instead of 0.
double divisor(Reduction reduction, const Shape& losses, double count);

/// Losses [B, ...], reduced.
Var reduce_losses(const Var& losses, Reduction reduction, double count);
inline Var reduce_losses(const Var& losses, Reduction reduction) {
  return reduce_losses(losses, reduction, static_cast<double>(losses.value().numel()));
}

}  // namespace braid::detail
