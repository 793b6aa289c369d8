#pragma once
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The parameters of the gates, of rank r, of a gated residual on n streams. Per token, with the RMS-normalized streams
/// `normed` = x_i / sqrt(mean(x_i^2) + eps), all n C elements times 1 + norm, and z = in normed / n:
///
///     u = mean_i sigmoid(up silu(z_low))_i normed_i    post = 2 sigmoid(z_post)
struct GatedMaps {
  Var norm;    ///< [n C], the weights of the norms minus 1
  Var in;      ///< [r + n, n C], rows low | post; [r, n C] for gated_mean()
  Var up;      ///< [n C, r]
  double eps;  ///< of the norm
};

/// The gated mean u alone: x [..., n, C] -> [..., C]. Throws ShapeError or DTypeError unless the parameters fit x.
Var gated_mean(const GatedMaps& maps, const Var& x);

/// The gated mean of the streams and the weights of the write, in tiles of tokens that stay in cache, with the write
/// deferred. Only norms and z are saved beside the streams. H_res is the identity, and h_pre is undefined: each channel
/// has a gate. Throws ShapeError or DTypeError unless the parameters fit the streams.
LayerRead read_maps(const GatedMaps& maps, StreamState& streams);

}  // namespace braid::mhc
