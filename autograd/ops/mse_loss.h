#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Mean squared error: `mean((prediction - target)^2)` over all elements, zero when there is none.
/// prediction, target [...] -> a scalar. Throws ShapeError unless the shapes are equal: there is no broadcasting,
/// which would hide a mistake.
Var mse_loss(const Var& prediction, const Var& target);

}  // namespace braid
