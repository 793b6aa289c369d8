#pragma once
#include <concepts>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <vector>

#include <braid/core/tensor.h>

namespace braid {

/// A set of axes of a tensor, negative ones counted from the end: `sum(x, {0, 2})`, or `sum(x, 1)` for a single one.
/// Empty means all axes.
struct Axes : std::vector<int> {
  Axes() = default;
  template <std::same_as<int> T>  // not of a bool, which would be keep_dims in the wrong place
  Axes(T axis) : vector{axis} {}
  Axes(std::initializer_list<int> axes) : vector(axes) {}
  Axes(std::vector<int> axes) : vector(std::move(axes)) {}
  template <std::input_iterator It>
  Axes(It begin, It end) : vector(begin, end) {}
};

/// Sums over `axes`, which disappear unless `keep_dims`. Partial sums are added in the order of fixed blocks.
/// Throws ShapeError on an axis that is not there or is given twice, ValueError when a sum does not fit i32; the
/// messages name `op`. Those of bf16 are added up in f32, and rounded unless `dtype` asks for f32.
Tensor reduce_sum(const Tensor& x, const Axes& axes = {}, bool keep_dims = false, const char* op = "sum",
                  std::optional<DType> dtype = {});
/// The largest (smallest) element along `axes`; NaN if there is one. Throws ShapeError when there is none to choose
/// from.
Tensor reduce_max(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
/// The smallest element; as reduce_max otherwise.
Tensor reduce_min(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);

/// The shape that a reduction over `axes` gives. Throws ShapeError naming `op`.
Shape reduced_shape(const char* op, const Shape& shape, const Axes& axes, bool keep_dims);

/// Sums over the axes along which `shape` was broadcast to x's shape: the vjp of broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace braid
