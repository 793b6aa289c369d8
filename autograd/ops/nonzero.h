#pragma once
#include <braid/autograd/var.h>

namespace braid {

/// The positions of the elements that are not zero, row-major: x [...] -> i32 [count, rank], a row of indices for each.
/// NaN is not zero. A constant, also for x on a tape. Throws ShapeError when an axis is too long for i32.
Tensor nonzero(const Var& x);

}  // namespace braid
