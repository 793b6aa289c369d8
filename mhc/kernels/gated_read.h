#pragma once
#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// Streams and the parameters of their low-rank gates, with or without the gates of the write that follows, or the
/// gradients of these. Contiguous.
struct GatedRead {
  Tensor norm, in, up;  // [nC], [rows, nC] with rank rows low and, where there is a write, n rows post, [nC, rank]
  Tensor x;             // [..., n, C]
};

/// What the vjp needs again.
struct GatedSaved {
  Tensor rstd, z;  // [..., n], [..., rows]
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct GatedReadKernels {
  /// With normed_i = x_i rstd_i (1 + norm_i), rstd_i = 1 / sqrt(mean(x_i^2) + eps), and z = in normed / n:
  /// u = mean_i sigmoid(up silu(z_low))_i normed_i, post = 2 sigmoid(z_post), which is undefined without a write.
  void (*read)(const GatedRead&, double eps, GatedSaved& saved, Tensor& u, Tensor& post);
  /// Its vjp, with that of the residual path, which passes x on, tile by tile of tokens that stay in cache. The gates
  /// are computed anew; they and the normed streams are kept for the products of all tokens that give din and dup. An
  /// undefined dy is zero; dpost is not read without a write.
  void (*vjp)(const GatedRead&, const GatedSaved&, const Tensor& du, const Tensor& dy, const Tensor& dpost,
              GatedRead& gradients);
};

braid::kernels::Tables<GatedReadKernels> gated_read_kernels();

}  // namespace braid::mhc::kernels
