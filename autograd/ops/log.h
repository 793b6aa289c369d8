#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The natural logarithm, element by element: -inf at 0, NaN below. Throws DTypeError for i32.
Var log(const Var& x);

}  // namespace braid
