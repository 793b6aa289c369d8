#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `1 / (1 + e^-x)`, element by element. Throws DTypeError for i32.
Var sigmoid(const Var& x);

}  // namespace braid
