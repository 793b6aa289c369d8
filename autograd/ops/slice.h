#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// A view of the positions [begin, end) of an axis; negative positions count from the end. Throws ShapeError when they
/// are not inside the axis.
Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end);

}  // namespace braid
