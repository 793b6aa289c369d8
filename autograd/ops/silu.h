#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `x sigmoid(x)`, element by element (also called swish). Throws DTypeError for i32. arXiv:1702.03118.
Var silu(const Var& x);

}  // namespace braid
