#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `log(1 + x)`, element by element, precise where x is close to 0: -inf at -1, NaN below. Throws DTypeError for i32.
Var log1p(const Var& x);

}  // namespace braid
