#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `|x|`, element by element; the gradient at 0 is 0. The smallest i32, which has no counterpart, stays.
Var abs(const Var& x);

}  // namespace braid
