#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// A view that repeats x along new leading axes and axes of size 1 (numpy's rule). Throws ShapeError when x does not
/// broadcast to `shape`.
inline Var broadcast_to(const Var& x, const Shape& shape) { return x.broadcast_to(shape); }

namespace detail {
/// The transpose: x summed over the axes along which `shape` was broadcast to its shape. x itself if it has that shape.
Var sum_to(const Var& x, const Shape& shape);
}  // namespace detail

}  // namespace braid
