#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `|x|`, element by element; the gradient at 0 is 0. Throws DTypeError for i32.
Var abs(const Var& x);

}  // namespace braid
