#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// `log(sum(exp(x)))` over `axes` (empty: all), which disappear unless `keep_dims`; the largest x is subtracted
/// first, so that nothing overflows. -inf where there is nothing to sum or all x are -inf. Throws ShapeError for a
/// missing or repeated axis, DTypeError for i32.
Var logsumexp(const Var& x, const Axes& axes = {}, KeepDims keep_dims = false);

}  // namespace braid
