#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// A view of the positions [begin, end) of an axis; negative positions count from the end. Throws ShapeError when they
/// are not inside the axis.
Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end);

/// A view of one position of an axis, which disappears; negative positions count from the end. `x[i]` is short for
/// axis 0. Throws ShapeError when it is not inside the axis.
Var select(const Var& x, int axis, std::int64_t position);

}  // namespace braid
