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

/// The elements of a tensor; null when it is undefined: not given, or not wanted.
struct In {
  const Tensor& tensor;

  template <class T>
  operator const T*() const {
    return tensor.defined() ? tensor.data<T>() : nullptr;
  }
};

/// The same for writing.
struct Out {
  Tensor& tensor;

  template <class T>
  operator T*() const {
    return tensor.defined() ? tensor.mutable_data<T>() : nullptr;
  }
};

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
template <class T>
kernels::StreamMap<const T> map_in(const Tensor& map, int axes) {
  const bool shared = !map.defined() || map.rank() == axes;
  return {In{map}, shared ? 0 : map.strides()[static_cast<std::size_t>(map.rank() - axes - 1)]};
}

template <class T>
kernels::StreamMap<T> map_out(Tensor& map, int axes) {
  return {Out{map}, map_in<T>(map, axes).step};
}

}  // namespace braid::mhc::detail
