#pragma once
#include <braid/autograd/ops/reduction.h>
#include <braid/autograd/tape.h>

namespace braid::detail {

/// What losses [B, ...] are divided by: for the mean by their `count`, or by the sum of their weights, unless it is 0.
double divisor(Reduction reduction, const Shape& losses, double count);

/// Losses [B, ...], reduced.
Var reduce_losses(const Var& losses, Reduction reduction, double count);
inline Var reduce_losses(const Var& losses, Reduction reduction) {
  return reduce_losses(losses, reduction, static_cast<double>(losses.value().numel()));
}

}  // namespace braid::detail
