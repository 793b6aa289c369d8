#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Running sums along an axis: `y[.., i, ..] = sum over j <= i of x[.., j, ..]`, added in order and in double.
/// Throws ShapeError for a missing axis, DTypeError for i32.
Var cumsum(const Var& x, int axis = -1);

}  // namespace braid
