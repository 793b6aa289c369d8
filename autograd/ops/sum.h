#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// Sums over `axes` (empty: all), which disappear unless `keep_dims`. Throws ShapeError for a missing or repeated axis,
/// ValueError when a sum of integers does not fit i32.
Var sum(const Var& x, const Axes& axes = {}, KeepDims keep_dims = false);

/// The mean over `axes`, which sum() explains: `sum(x) / n` for n elements; NaN for n = 0. Throws ShapeError as sum()
/// does, DTypeError for i32.
Var mean(const Var& x, const Axes& axes = {}, KeepDims keep_dims = false);

}  // namespace braid
