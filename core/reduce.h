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
  template <std::same_as<int> T>  // rejects a bool, which would be a misplaced keep_dims
  Axes(T axis) : vector{axis} {}
  Axes(std::initializer_list<int> axes) : vector(axes) {}  ///< several
  Axes(std::vector<int> axes) : vector(std::move(axes)) {}
  template <std::input_iterator It>
  Axes(It begin, It end) : vector(begin, end) {}
};

/// Whether a reduction keeps the axes that it reduces, with size 1. Takes no number, which would be a misplaced axis,
/// or the `correction` of var.
struct KeepDims {
  template <std::same_as<bool> T>
  KeepDims(T keep) : value(keep) {}        ///< of a bool alone
  operator bool() const { return value; }  ///< value

  bool value;  ///< whether they stay
};

/// Sums over `axes`, which are removed unless `keep_dims`. Partial sums are added in the order of fixed blocks. bf16 is
/// summed in f32, and rounded unless `dtype` is f32. Throws ShapeError for a missing or repeated axis, ValueError
/// if a sum does not fit i32, DTypeError for another `dtype`; messages name `op`.
Tensor reduce_sum(const Tensor& x, const Axes& axes = {}, KeepDims keep_dims = false, const char* op = "sum",
                  std::optional<DType> dtype = {});
/// The largest element along `axes`; NaN if there is one. Throws ShapeError if there are no elements, and for a missing
/// or repeated axis.
Tensor reduce_max(const Tensor& x, const Axes& axes = {}, KeepDims keep_dims = false);
/// The smallest element along `axes`; NaN if there is one. Throws as reduce_max() does.
Tensor reduce_min(const Tensor& x, const Axes& axes = {}, KeepDims keep_dims = false);

/// The shape of the result of a reduction over `axes`. Throws ShapeError naming `op` for a missing or repeated axis.
Shape reduced_shape(const char* op, const Shape& shape, const Axes& axes, KeepDims keep_dims);

/// The vjp of broadcasting `shape` to x's: sums x over the axes that did. Throws ShapeError if it does not broadcast.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace braid
