#pragma once
#include <braid/mhc/mixing.h>
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The parameters and settings behind the dynamic maps of one hyper-connection on n streams:
///
///     h = alpha (x_flat phi) / r + bias,   r = sqrt(mean(x_flat^2) + eps),   columns of phi: pre n | post n | mixing
///     H_pre = sigmoid(h_pre) + pre_eps     H_post = post_magnitude sigmoid(h_post) + post_eps    H_res =
///     mixing(h_mixing)
struct MHCMaps {
  Var phi;    ///< [n C, columns()]
  Var alpha;  ///< [groups()]: pre, post and, where it has logits, mixing
  Var bias;   ///< [columns()]
  const Mixing& mixing;
  double eps;                                            ///< of the norm
  double pre_eps = 0, post_eps = 0, post_magnitude = 2;  ///< see above
  bool reads_only = false;                               ///< phi has no columns for post: nothing is written

  /// Columns of phi that make H_pre and H_post.
  std::int64_t gates() const { return (reads_only ? 1 : 2) * mixing.n(); }
  /// All columns of phi.
  std::int64_t columns() const { return gates() + mixing.logits(); }
  /// Elements of alpha.
  std::int64_t groups() const { return (reads_only ? 1 : 2) + (mixing.logits() > 0 ? 1 : 0); }
};

/// The maps of x [..., n, C], composed of other ops. Throws ShapeError unless the parameters fit x.
StreamMaps compose_maps(const MHCMaps& maps, const Var& x);

namespace detail {

/// (x_flat phi) / r, composed of other ops: [..., columns()].
Var normalized_products(const MHCMaps& maps, const Var& x);

/// The maps of x [..., n, C] and the read by them in one pass, with the write deferred (arXiv:2512.24880, 4.3).
/// Values and gradients are those of compose_maps(); only z, r and the maps are saved beside the streams. With `pre`
/// ([n] or [..., n]) that is what is read by, and h_pre of the result is on the tape, for the next to read by (single
/// pass, arXiv:2609.19969). Throws ShapeError unless the parameters fit x.
LayerRead mhc_read(const MHCMaps& maps, const Var& x, const Var& pre = {});

/// The same on the streams that the deferred write of f after `before` gives: the write, the maps and the read are one
/// pass. Of a chain of these, every keep_every-th saves its streams for the backward pass; the rest writes them again
/// from the layers' outputs, bit for bit.
LayerRead mhc_read(const MHCMaps& maps, const LayerRead& before, const Var& f, std::int64_t keep_every,
                   const Var& pre = {});

}  // namespace detail
}  // namespace braid::mhc
