#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>
#include <braid/mhc/kernels/read_write.h>

namespace braid::mhc::kernels {

/// The maps and the norm's weight of an MHCLayer, the same for all tokens.
template <class T>
struct MHCLayerParams {
  const T *h_pre, *h_post, *h_res, *weight;  // [n], [n], [n, n], [C]
};

/// u = sum_i h_pre_i x_i, f = u rstd weight, y_i = sum_j h_res_ij x_j + h_post_i f.
template <class T>
struct MHCLayer {
  StreamSizes sizes;
  double eps;
  MHCLayerParams<Compute<T>> params;
  const T* x;        // [tokens, n, C]
  T* y;              // [tokens, n, C]
  Compute<T>* rstd;  // [tokens]
};

/// Its vjp, in one pass over x and dy; u and f are computed anew.
template <class T>
struct MHCLayerVjp {
  StreamSizes sizes;
  MHCLayerParams<Compute<T>> params;
  const T* x;
  const Compute<T>* rstd;
  const T* dy;
  T* dx;                                           // [tokens, n, C]
  Compute<T>*dh_pre, *dh_post, *dh_res, *dweight;  // summed tile by tile, then in the order of the tiles
};

/// The kernels for the best instruction set of this processor. T, that of the streams, is float, double or bfloat16.
template <class T>
struct MHCLayerKernels {
  void (*forward)(const MHCLayer<T>&);
  void (*vjp)(const MHCLayerVjp<T>&);
};

braid::kernels::Tables<MHCLayerKernels> mhc_layer_kernels();

}  // namespace braid::mhc::kernels
