#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>
#include <braid/mhc/kernels/read_write.h>

namespace braid::mhc::kernels {

/// The parameters of the maps of a hyper-connection (arXiv:2409.19606); m = n (n + 2), in the order pre | post | res.
template <class T>
struct HyperParams {
  const T* theta;  // [2 + n, C]: pre, post, res_0, ..
  const T* alpha;  // [3]: pre, post, res
  const T* bias;   // [m]
};

/// With s_kj = <theta_k, x_j> rstd_j, rstd_j = 1 / sqrt(mean(x_j^2) + eps): maps = alpha tanh(s) + bias, in rows of
/// pre [n], post [n], res [n, n], and u = H_pre x.
template <class T>
struct HyperRead {
  StreamSizes sizes;
  double eps;
  HyperParams<Compute<T>> params;
  const T* x;                  // [tokens, n, C]
  Compute<T>*s, *rstd, *maps;  // [tokens, m], [tokens, n], [tokens, m]
  T* u;                        // [tokens, C]
};

/// Its vjp, with that of the residual path H_res x, in one pass over tiles that stay in cache. Null cotangents are
/// zero.
template <class T>
struct HyperReadVjp {
  StreamSizes sizes;
  HyperParams<Compute<T>> params;
  const T* x;
  const Compute<T>*s, *rstd, *maps;
  const T *du, *dy;                    // [tokens, C], [tokens, n, C]
  const Compute<T>* dh_post;           // [tokens, n]
  T* dx;                               // [tokens, n, C]
  Compute<T>*dtheta, *dalpha, *dbias;  // summed tile by tile, then in the order of the tiles
};

/// The kernels for the best instruction set of this processor. T, that of the streams, is float, double or bfloat16.
template <class T>
struct HyperReadKernels {
  void (*read)(const HyperRead<T>&);
  void (*vjp)(const HyperReadVjp<T>&);
};

braid::kernels::Tables<HyperReadKernels> hyper_read_kernels();

}  // namespace braid::mhc::kernels
