#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// The variance over `axes` (none given: all), which disappear unless `keep_dims`:
/// `sum((x - mean(x))^2) / max(n - correction, 0)` for n elements. NaN for no more elements than `correction`, which is
/// 1 for a sample (the default, as in PyTorch) and 0 for all there is (numpy's). Throws ShapeError on an axis that is
/// not there or is given twice, DTypeError for i32.
Var var(const Var& x, const Axes& axes = {}, bool keep_dims = false, double correction = 1);

/// The standard deviation, `sqrt(var(x))`, not named like the namespace std. Its gradient is 0 where it is 0.
Var stddev(const Var& x, const Axes& axes = {}, bool keep_dims = false, double correction = 1);

}  // namespace braid
