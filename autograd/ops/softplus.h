#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `log(1 + e^x)`, element by element, computed as max(x, 0) + log1p(e^-|x|), so that nothing overflows.
/// Results below the smallest normal number are 0. Throws DTypeError for i32.
Var softplus(const Var& x);

}  // namespace braid
