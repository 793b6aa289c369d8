#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// A view with two axes exchanged. Throws ShapeError for a missing axis.
Var transpose(const Var& x, int axis_a = -2, int axis_b = -1);

/// A view whose axis i is axis `axes[i]` of x. Throws ShapeError unless each axis is given once.
Var permute(const Var& x, const Axes& axes);

}  // namespace braid
