#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// The position of the largest element along an axis, i32; the axis disappears unless `keep_dims`. Of equal elements
/// the first; the first NaN if there is one, as in numpy. A constant, also for x on a tape. Throws ShapeError for a
/// missing axis and for one of size 0.
Tensor argmax(const Var& x, int axis, KeepDims keep_dims = false);

/// The position of the smallest element; otherwise like argmax.
Tensor argmin(const Var& x, int axis, KeepDims keep_dims = false);

}  // namespace braid
