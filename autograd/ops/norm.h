#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// The Euclidean norm over `axes` (empty: all), which disappear unless `keep_dims`: `sqrt(sum(x^2))`, without
/// overflow or underflow between. 0 where there is nothing to sum. Its gradient is 0 where it is 0. Throws ShapeError
/// for a missing or repeated axis, DTypeError for i32. The norms for p = 1 and infinity are
/// `sum(abs(x), axes)` and `max(abs(x), axes)`.
Var norm(const Var& x, const Axes& axes = {}, KeepDims keep_dims = false);

}  // namespace braid
