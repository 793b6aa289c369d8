#pragma once
#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// x, the maps and the norm's weight of an MHCLayer, the same for all tokens; or the gradients of these. Contiguous.
struct MHCLayer {
  Tensor h_pre, h_post, h_res, weight;  // [n], [n], [n, n], [C]
  Tensor x;                             // [..., n, C]
};

/// The kernels for the best instruction set of this processor. T, that of the streams, is float, double or bfloat16.
template <class T>
struct MHCLayerKernels {
  /// u = sum_i h_pre_i x_i, f = u rstd weight, y_i = sum_j h_res_ij x_j + h_post_i f. rstd [tokens].
  void (*forward)(const MHCLayer&, double eps, Tensor& y, Tensor& rstd);
  /// Its vjp, in one pass over x and dy; u and f are computed anew. The gradients of the maps and the weight are summed
  /// tile by tile, then in the order of the tiles.
  void (*vjp)(const MHCLayer&, const Tensor& rstd, const Tensor& dy, MHCLayer& gradients);
};

braid::kernels::Tables<MHCLayerKernels> mhc_layer_kernels();

}  // namespace braid::mhc::kernels
