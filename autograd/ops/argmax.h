#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The position of the largest element along an axis, i32; the axis disappears unless `keep_dims`. The first one of
/// equals; the first NaN if there is one, as in numpy. A constant, also for x on a tape. Throws ShapeError when there
/// is nothing to choose from or no such axis.
Tensor argmax(const Var& x, int axis, bool keep_dims = false);

/// The position of the smallest element; as argmax otherwise.
Tensor argmin(const Var& x, int axis, bool keep_dims = false);

}  // namespace braid
