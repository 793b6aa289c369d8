#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// The largest element along `axes` (none given: all), which disappear unless `keep_dims`; NaN if there is one, and
/// then the gradients of all are NaN. Elements that share the largest value share the gradient. Throws ShapeError when
/// there is nothing to choose from, on an axis that is not there or is given twice.
Var max(const Var& x, const Axes& axes = {}, bool keep_dims = false);

/// The smallest element; as max otherwise.
Var min(const Var& x, const Axes& axes = {}, bool keep_dims = false);

}  // namespace braid
