#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

using braid::kernels::In, braid::kernels::Out;

struct StreamSizes {
  std::int64_t tokens, n, channels;

  std::int64_t width() const { return n * channels; }
};

/// A map of the streams, or its gradient: one for all tokens (step 0), or one per token at intervals of `step`
/// elements.
template <class T>
struct StreamMap {
  T* data = nullptr;
  std::int64_t step = 0;

  T* at(std::int64_t token) const { return data + token * step; }
};

/// The step from token to token of a map with `axes` axes per token, 0 for one map for all tokens: the stride of the
/// innermost leading axis longer than 1. Without such an axis, any step but 0 will do.
inline std::int64_t step_of(const Tensor& map, int axes) {
  const int lead = map.rank() - axes;
  for (int axis = lead - 1; axis >= 0; --axis)
    if (map.size(axis) != 1) return map.strides()[static_cast<std::size_t>(axis)];
  return lead == 0 ? 0 : map.numel();
}

/// A map with the same step everywhere as an argument, to be read (MapIn) or written (MapOut); null when undefined.
template <class Argument, class Map>
struct MapArgument {
  Map& map;
  int axes;

  template <class T>
  operator StreamMap<T>() const {
    return {Argument{map}, map.defined() ? step_of(map, axes) : 0};
  }
};
using MapIn = MapArgument<In, const Tensor>;
using MapOut = MapArgument<Out, Tensor>;

/// The inputs of a read and a write, or their gradients; undefined where there is none or it is unused. Contiguous, but
/// for the step from token to token of the maps.
struct StreamTensors {
  Tensor h_pre = {}, h_res = {}, h_post = {};  // [n], [n, n], [n], with leading axes or without
  Tensor x = {}, f = {};                       // [..., n, C], [..., C]
};

/// The kernels for the best instruction set of this processor. T, that of the streams, is float, double or bfloat16.
template <class T>
struct ReadWriteKernels {
  /// u = sum_i h_pre_i x_i
  void (*read)(const Tensor& h_pre, const Tensor& x, Tensor& u);
  /// y_i = sum_j h_res_ij x_j + h_post_i f; without f, h_res may be [m, n], with or without leading axes, and y [...,
  /// m, C].
  void (*write)(const Tensor& h_res, const Tensor& h_post, const Tensor& x, const Tensor& f, Tensor& y);
  /// The vjp of both, in one pass: df = H_post dy, dx_j = sum_i h_res_ij dy_i + h_pre_j du, dh_post_i = <dy_i, f>,
  /// dh_res_ij = <dy_i, x_j>, dh_pre_i = <du, x_i>. An undefined du or dy is zero. Gradients of maps per token are
  /// added to the values there; those of maps for all tokens are summed tile by tile, then in the order of the tiles.
  void (*vjp)(const StreamTensors&, const Tensor& du, const Tensor& dy, StreamTensors& gradients);
};

braid::kernels::Tables<ReadWriteKernels> read_write_kernels();

}  // namespace braid::mhc::kernels
