#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// `exp(x) / sum(exp(x))` along `axes` ({}: all); the largest x is subtracted first, so that nothing overflows. NaN
/// where all elements along the axes are -inf. Throws ShapeError for a missing or repeated axis, DTypeError for i32.
Var softmax(const Var& x, const Axes& axes = -1);

/// `log(softmax(x))`, precise where softmax is close to 0; otherwise like softmax.
Var log_softmax(const Var& x, const Axes& axes = -1);

}  // namespace braid
