#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `x^p`, element by element. Throws DTypeError for i32.
Var pow(const Var& x, double p);

/// `a^b` with broadcasting. The gradient of b is 0 where a = 0 and b >= 0. Throws ShapeError when shapes do not
/// broadcast and DTypeError when dtypes differ.
Var pow(const Var& a, const Var& b);
/// `a^b` for a number a, which takes the dtype of b.
inline Var pow(double a, const Var& b) { return pow(scalar(a, b.dtype(), "pow"), b); }

}  // namespace braid
