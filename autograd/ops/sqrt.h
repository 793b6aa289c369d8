#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The square root, element by element; NaN below 0. The gradient at 0 is infinite. Throws DTypeError for i32.
Var sqrt(const Var& x);

/// `1 / sqrt(x)`, element by element. Throws DTypeError for i32.
Var rsqrt(const Var& x);

}  // namespace braid
