#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// A view that repeats x along new leading axes and axes of size 1 (numpy's rule). Throws ShapeError when x does not
/// broadcast to `shape`.
Var broadcast_to(const Var& x, const Shape& shape);

}  // namespace braid
