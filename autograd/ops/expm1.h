#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `e^x - 1`, element by element, precise where x is close to 0. Throws DTypeError for i32.
Var expm1(const Var& x);

}  // namespace braid
