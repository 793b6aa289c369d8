#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// A view with the positions of `axes` ({}: all) in reverse order. Throws ShapeError for a missing or repeated axis.
Var flip(const Var& x, const Axes& axes);

}  // namespace braid
