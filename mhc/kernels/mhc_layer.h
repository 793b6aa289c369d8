#pragma once
#include <cstdint>

#include <braid/mhc/kernels/read_write.h>

namespace braid::mhc::kernels {

/// The maps and the norm's weight of an MHCLayer, the same for all tokens.
template <class T>
struct LayerParams {
  const T *h_pre, *h_post, *h_res, *weight;  // [n], [n], [n, n], [C]
};

/// u = sum_i h_pre_i x_i, f = u rstd weight, y_i = sum_j h_res_ij x_j + h_post_i f.
template <class T>
struct LayerForward {
  StreamSizes sizes;
  double eps;
  LayerParams<T> params;
  const T* x;   // [tokens, n, C]
  T *y, *rstd;  // [tokens, n, C], [tokens]
};

/// Its vjp, in one pass over x and dy; u and f are computed anew.
template <class T>
struct LayerVjp {
  StreamSizes sizes;
  LayerParams<T> params;
  const T *x, *rstd, *dy;
  T* dx;                                   // [tokens, n, C]
  T *dh_pre, *dh_post, *dh_res, *dweight;  // summed tile by tile, then in the order of the tiles
};

void mhc_layer(const LayerForward<float>& call);
void mhc_layer(const LayerForward<double>& call);
void mhc_layer_vjp(const LayerVjp<float>& call);
void mhc_layer_vjp(const LayerVjp<double>& call);

}  // namespace braid::mhc::kernels
