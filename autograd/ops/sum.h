#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// Sums over `axes` (none given: all), which disappear unless `keep_dims`. Throws ShapeError on an axis that is not
/// there or is given twice, ValueError when a sum of integers does not fit i32.
Var sum(const Var& x, const Axes& axes = {}, bool keep_dims = false);

/// `sum(x) / n` for the n elements that each result is made of; NaN when there are none. Otherwise like sum, but throws
/// DTypeError for i32.
Var mean(const Var& x, const Axes& axes = {}, bool keep_dims = false);

}  // namespace braid
