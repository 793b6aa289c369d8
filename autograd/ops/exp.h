#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `e^x`, element by element. Throws DTypeError for i32.
Var exp(const Var& x);

}  // namespace braid
