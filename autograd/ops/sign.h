#pragma once
#include <braid/autograd/var.h>

namespace braid {

/// -1, 0 or 1 as x is negative, zero or positive, element by element, in the dtype of x; NaN stays. A constant, also
/// for x on a tape: its derivative is zero wherever it exists.
Tensor sign(const Var& x);

}  // namespace braid
