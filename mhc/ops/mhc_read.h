#pragma once
#include <braid/mhc/mixings/mixing.h>
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The parameters and settings of the dynamic maps of a hyper-connection on n streams:
///
///     h = alpha (x_flat phi) / r + bias,   r = sqrt(mean(x_flat^2) + eps),   columns of phi: pre n | post n | mixing
///     H_pre = sigmoid(h_pre) + pre_eps     H_post = post_magnitude sigmoid(h_post) + post_eps
///     H_res = mixing(h_mixing)
struct MHCMaps {
  Var phi;    ///< [n C, columns()]
  Var alpha;  ///< [groups()]: pre, post and, where it has logits, mixing
  Var bias;   ///< [columns()]
  Mixing mixing;
  double eps;                                            ///< of the norm
  double pre_eps = 0, post_eps = 0, post_magnitude = 2;  ///< see above
  bool reads_only = false;                               ///< phi has no columns for post, and h_post is undefined

  /// Columns of phi that make H_pre and H_post.
  std::int64_t gates() const { return (reads_only ? 1 : 2) * mixing.n(); }
  /// All columns of phi.
  std::int64_t columns() const { return gates() + mixing.logits(); }
  /// Elements of alpha.
  std::int64_t groups() const { return (reads_only ? 1 : 2) + (mixing.logits() > 0 ? 1 : 0); }
};

/// Maps of which h_pre is for the next read: this one reads by the h_pre of the connection before (single pass,
/// arXiv:2609.19969).
struct SinglePassMaps {
  MHCMaps maps;
  Var h_pre;  ///< [n] or [..., n], what this read reads by
};

/// The maps of x [..., n, C], composed of other ops. Throws ShapeError or DTypeError unless the parameters fit x.
StreamMaps compose_maps(const MHCMaps& maps, const Var& x);

namespace detail {
/// (x_flat phi) / r, composed of other ops: [..., columns()]. Throws as compose_maps().
Var normalized_products(const MHCMaps& maps, const Var& x);
}  // namespace detail

/// The pending write, the maps and the read by them in one pass over the streams, with the next write deferred
/// (arXiv:2512.24880, 4.3). Only z = x_flat phi, r and the maps are saved beside the streams, and of a chain of these
/// only every keep_every-th saves its streams; the others recompute them from the layers' outputs with the same bits.
/// Throws ShapeError or DTypeError unless the parameters fit the streams.
LayerRead read_maps(const MHCMaps& maps, StreamState& streams);
/// Reads by the h_pre given; the h_pre of the result, computed here, is on the tape.
LayerRead read_maps(const SinglePassMaps& maps, StreamState& streams);

}  // namespace braid::mhc
