#pragma once
#include <braid/autograd/tape.h>
#include <braid/mhc/kernels/read_write.h>

// Tensors as arguments of kernels.

namespace braid::mhc::detail {

/// Throws ShapeError or DTypeError naming `op` and `name` unless an argument has the shape that x asks for and its
/// dtype.
inline void check_argument(const char* op, const char* name, const Var& argument, const Shape& shape, const Var& x) {
  check_shape(argument.shape() == shape, "{}: {} must have shape {} to match x {} but has {}", op, name, shape,
              x.shape(), argument.shape());
  check_same_dtype(op, argument.value(), x.value());
}

using braid::kernels::In, braid::kernels::Out;

/// Of the same shape and dtype, uninitialized; undefined when `t` is.
inline Tensor like(const Tensor& t) { return t.defined() ? Tensor(t.shape(), t.dtype()) : Tensor(); }

/// x [..., n, C] without its last two axes.
inline Shape lead_of(const Shape& x) { return x.axes(0, x.rank() - 2); }

/// The map as kernels take it: its last `axes` axes row-major, and one step from token to token, as in rows that hold
/// several maps of a token.
inline Tensor stepped(const Tensor& map, int axes) {
  const Strides rows = contiguous_strides(map.shape());
  const int lead = map.rank() - axes;
  const auto at = [](const Strides& s, int axis) { return s[static_cast<std::size_t>(axis)]; };
  for (int axis = 0; axis < map.rank(); ++axis) {
    const std::int64_t wanted =
        axis < lead ? at(map.strides(), lead - 1) * (at(rows, axis) / at(rows, lead - 1)) : at(rows, axis);
    if (map.size(axis) != 1 && at(map.strides(), axis) != wanted) return map.contiguous();
  }
  return map;
}

/// A stepped() map, or one map with `axes` axes for all tokens, or null when undefined; and the same for writing.
struct MapIn {
  const Tensor& map;
  int axes;

  std::int64_t step() const {
    const bool shared = !map.defined() || map.rank() == axes;
    return shared ? 0 : map.strides()[static_cast<std::size_t>(map.rank() - axes - 1)];
  }
  template <class T>
  operator kernels::StreamMap<const T>() const {
    return {In{map}, step()};
  }
};

struct MapOut {
  Tensor& map;
  int axes;

  template <class T>
  operator kernels::StreamMap<T>() const {
    return {Out{map}, MapIn{map, axes}.step()};
  }
};

}  // namespace braid::mhc::detail
