#pragma once
#include <braid/core/tensor.h>
#include <braid/mhc/kernels/read_write.h>

namespace braid::mhc::detail {

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

/// From token to token; 0 for one map with `axes` axes for all tokens.
inline std::int64_t step_of(const Tensor& map, int axes) {
  return map.rank() == axes ? 0 : map.strides()[static_cast<std::size_t>(map.rank() - axes - 1)];
}

/// Of a stepped() map; null when it is undefined.
template <class T>
kernels::StreamMap<const T> map_of(const Tensor& map, int axes) {
  if (!map.defined()) return {};
  return {map.data<T>(), step_of(map, axes)};
}

/// The same for writing.
template <class T>
kernels::StreamMap<T> gradient_of(Tensor& map, int axes) {
  if (!map.defined()) return {};
  return {map.mutable_data<T>(), step_of(map, axes)};
}

}  // namespace braid::mhc::detail
