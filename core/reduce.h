#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.h>

namespace braid {

/// A set of axes of a tensor. Empty means all axes; negative axes count from the end.
using Axes = std::vector<int>;

/// Sums over `axes`, which disappear unless `keep_dims`. Partial sums are added in the order of fixed blocks.
/// Throws ShapeError on an axis that is not there or is given twice, DTypeError for i32.
Tensor reduce_sum(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
/// The largest (smallest) element along `axes`; NaN if there is one. Throws ShapeError when there is none to choose
/// from.
Tensor reduce_max(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_min(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);

/// The shape that a reduction over `axes` gives. Throws ShapeError naming `op`.
Shape reduced_shape(const char* op, const Shape& shape, const Axes& axes, bool keep_dims);

/// Sums over the axes along which `shape` was broadcast to x's shape: the vjp of broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace braid
