#pragma once
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The parameters behind the gates of rank r of a gated residual on n streams. Per token, with the streams' RMS norms
/// `normed` = x_i / sqrt(mean(x_i^2) + eps), all n C of them times 1 + norm, and z = in normed / n:
///
///     u = mean_i sigmoid(up silu(z_low))_i normed_i    post = 2 sigmoid(z_post)
struct GatedMaps {
  const Var& norm;  ///< [n C], the weights of the norms less 1
  const Var& in;    ///< [r + n, n C], rows low | post; [r, n C] where nothing is written
  const Var& up;    ///< [n C, r]
  double eps;       ///< of the norm
  Path path = default_path();
};

/// The gated mean u alone, where nothing is written: x [..., n, C] -> [..., C]. Throws ShapeError unless the parameters
/// fit x.
Var gated_mean(const GatedMaps& maps, const Var& x);

namespace detail {

/// The gated mean of x [..., n, C] and the weights of the write, in tiles of tokens that stay in cache, with the write
/// deferred on the fused path. Only norms and z are saved beside the streams. H_res is the identity, and there is no
/// h_pre: a gate belongs to a channel. Throws ShapeError unless the parameters fit x.
LayerRead gated_read(const GatedMaps& maps, const Var& x);

}  // namespace detail
}  // namespace braid::mhc
