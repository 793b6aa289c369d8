#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// The largest element along `axes` (empty: all), which disappear unless `keep_dims`; NaN if any is NaN, and then all
/// gradients are NaN. Elements equal to the largest share the gradient. Throws ShapeError when there is no element, and
/// for a missing or repeated axis.
Var max(const Var& x, const Axes& axes = {}, KeepDims keep_dims = false);

/// The smallest element; otherwise like max.
Var min(const Var& x, const Axes& axes = {}, KeepDims keep_dims = false);

}  // namespace braid
