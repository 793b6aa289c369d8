#pragma once
#include <braid/autograd/ops/reduction.h>
#include <braid/autograd/tape.h>

namespace braid {

/// Squared error: `(prediction - target)^2`, by default the mean over all elements. prediction, target [...] ->
/// reduced, in f32 for a prediction of bf16, whose target may be f32. Throws ShapeError unless the shapes are equal:
/// broadcasting would hide mistakes. Throws DTypeError for i32 and when dtypes differ.
Var mse_loss(const Var& prediction, const Var& target, Reduction reduction = Reduction::mean);

}  // namespace braid
