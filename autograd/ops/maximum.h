#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The larger of each pair of elements, with broadcasting. NaN if either is NaN, and then both gradients are NaN. Equal
/// elements get half of the gradient each. A number takes the dtype of the other operand. Throws ShapeError when shapes
/// do not broadcast, DTypeError when dtypes differ, ValueError for a number outside i32.
Var maximum(const Var& a, const Var& b);
inline Var maximum(const Var& a, double b) { return maximum(a, scalar(b, a.dtype(), "maximum")); }
inline Var maximum(double a, const Var& b) { return maximum(scalar(a, b.dtype(), "maximum"), b); }

/// The smaller of each pair of elements; otherwise like maximum.
Var minimum(const Var& a, const Var& b);
inline Var minimum(const Var& a, double b) { return minimum(a, scalar(b, a.dtype(), "minimum")); }
inline Var minimum(double a, const Var& b) { return minimum(scalar(a, b.dtype(), "minimum"), b); }

}  // namespace braid
