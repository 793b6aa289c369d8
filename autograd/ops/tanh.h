#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The hyperbolic tangent, element by element. Throws DTypeError for i32.
Var tanh(const Var& x);

}  // namespace braid
