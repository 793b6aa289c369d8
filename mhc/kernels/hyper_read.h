#pragma once
#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// Streams and the parameters of their maps in a hyper-connection (arXiv:2409.19606), or the gradients of these;
/// m = n (n + 2), in the order pre | post | res. Contiguous.
struct HyperRead {
  Tensor theta;  // [2 + n, C]: pre, post, res_0, ..
  Tensor alpha;  // [3]: pre, post, res
  Tensor bias;   // [m]
  Tensor x;      // [..., n, C]
};

/// What the vjp needs again.
struct HyperSaved {
  Tensor maps, s, rstd;  // [..., n + 2, n], [..., m], [..., n]
};

/// The kernels for the best instruction set of this processor. T, that of the streams, is float, double or bfloat16.
template <class T>
struct HyperReadKernels {
  /// With s_kj = <theta_k, x_j> rstd_j, rstd_j = 1 / sqrt(mean(x_j^2) + eps): maps = alpha tanh(s) + bias, in rows of
  /// pre [n], post [n], res [n, n], and u = H_pre x.
  void (*read)(const HyperRead&, double eps, HyperSaved& saved, Tensor& u);
  /// Its vjp, with that of the residual path H_res x, in one pass over tiles that stay in cache. Undefined cotangents
  /// are zero. The gradients of the parameters are summed tile by tile, then in the order of the tiles.
  void (*vjp)(const HyperRead&, const HyperSaved&, const Tensor& du, const Tensor& dy, const Tensor& dh_post,
              HyperRead& gradients);
};

braid::kernels::Tables<HyperReadKernels> hyper_read_kernels();

}  // namespace braid::mhc::kernels
