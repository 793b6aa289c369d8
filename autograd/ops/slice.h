#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// A view of every `step`-th position of [begin, end) of an axis; negative positions count from the end. A negative
/// step goes back, from `begin` to the last position above `end`: `slice(x, axis, -1, -n - 1, -1)` is all n in reverse
/// order. Throws ShapeError when they are not inside the axis, ValueError when step is 0.
inline Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1) {
  return x.slice(axis, begin, end, step);
}

/// A view of one position of an axis, which disappears; negative positions count from the end. `x[i]` is short for
/// axis 0. Throws ShapeError when it is not inside the axis.
inline Var select(const Var& x, int axis, std::int64_t position) { return x.select(axis, position); }

}  // namespace braid
