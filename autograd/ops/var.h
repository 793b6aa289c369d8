#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// The variance over `axes` (empty: all), which disappear unless `keep_dims`:
/// `sum((x - mean(x))^2) / max(n - correction, 0)` for n elements. NaN if there are not more elements than
/// `correction`, which is 1 for a sample (the default, as in PyTorch) and 0 for a whole population (as in numpy).
/// Throws ShapeError for a missing or repeated axis, DTypeError for i32.
Var var(const Var& x, const Axes& axes = {}, KeepDims keep_dims = false, double correction = 1);

/// The standard deviation, `sqrt(var(x))`, not named like std. Its gradient is 0 where it is 0; otherwise like var.
Var stddev(const Var& x, const Axes& axes = {}, KeepDims keep_dims = false, double correction = 1);

}  // namespace braid
