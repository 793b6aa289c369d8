#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `max(x, 0)`, element by element; the gradient at 0 is 0. Throws DTypeError for i32.
Var relu(const Var& x);

}  // namespace braid
