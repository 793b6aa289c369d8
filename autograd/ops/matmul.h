#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Products of the matrices in the last two axes; leading axes broadcast.
/// a [..., m, k], b [..., k, n] -> [..., m, n]. Throws ShapeError or DTypeError when they do not fit.
Var matmul(const Var& a, const Var& b);

}  // namespace braid
