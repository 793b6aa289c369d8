#pragma once
#include <braid/autograd/tape.h>
#include <braid/mhc/kernels/read_write.h>

// Tensors as arguments of kernels.

namespace braid::mhc::detail {

/// Throws DTypeError naming `op` and `name` unless a map or a parameter has the compute dtype of x: f32 for
/// streams of bf16.
inline void check_map_dtype(const char* op, const char* name, const Var& map, const Var& x) {
  if (x.dtype() != DType::bf16) return check_same_dtype(op, map.value(), x.value());
  check_dtype(map.dtype() == DType::f32, "{}: {} must have dtype f32 for x of bf16 but has {}", op, name,
              braid::name(map.dtype()));
}

/// Throws ShapeError or DTypeError naming `op` and `name` unless an argument has this shape and the compute dtype of x.
inline void check_argument(const char* op, const char* name, const Var& argument, const Shape& shape, const Var& x) {
  check_shape(argument.shape() == shape, "{}: {} must have shape {} to match x {} but has {}", op, name, shape,
              x.shape(), argument.shape());
  check_map_dtype(op, name, argument, x);
}

/// An uninitialized tensor of the shape and dtype of `t`; undefined when `t` is.
inline Tensor like(const Tensor& t) { return t.defined() ? Tensor(t.shape(), t.dtype()) : Tensor(); }

/// x [..., n, C] without its last two axes.
inline Shape lead_of(const Shape& x) { return x.axes(0, x.rank() - 2); }

/// The map in the layout of kernels: its last `axes` axes row-major, with one step from token to token.
inline Tensor stepped(const Tensor& map, int axes) {
  if (map.numel() == 0) return map;
  std::int64_t expected = 1;
  for (int axis = map.rank() - 1; axis >= 0; --axis) {
    if (axis == map.rank() - axes - 1) expected = kernels::step_of(map, axes);
    if (map.size(axis) != 1 && map.strides()[static_cast<std::size_t>(axis)] != expected) return map.clone();
    expected *= map.size(axis);
  }
  return map;
}

}  // namespace braid::mhc::detail
