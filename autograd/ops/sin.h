#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The sine of x in radians, element by element; NaN at infinities. Throws DTypeError for i32.
Var sin(const Var& x);

/// The cosine; otherwise like sin.
Var cos(const Var& x);

}  // namespace braid
