#pragma once
#include <string>

#include <braid/core/random.h>
#include <braid/mhc/streams/stream_connection.h>

namespace braid::mhc {

/// Settings of ManifoldConstrainedHC.
struct ManifoldConstrainedHCSettings {
  std::string mixing = "sinkhorn";  ///< what makes H_res of its logits: see Mixing
  MixingSettings mixing_settings = {};
  double eps = 1e-6;    ///< of the RMS norm in front of the maps
  double phi_std = 0;   ///< phi ~ N(0, phi_std^2); see symmetry below
  double alpha = 0.01;  ///< at the start; 0 with phi_std > 0: see upcycling below
  StreamReduction reduction = StreamReduction::mean;
  std::int64_t keep_every = 1;  ///< see Streams
  DType dtype = DType::f32;
};

/// Manifold-constrained hyper-connections (mHC), arXiv:2512.24880, eq. 3, 7-9:
/// `out = H_res x + H_post^T layer(H_pre x)` on n streams x [..., n, C], with maps of the token
///
///     h = alpha (x_flat phi) / r + bias,   r = sqrt(mean(x_flat^2) + eps),   columns of phi: pre n | post n | mixing
///     H_pre = sigmoid(h_pre)   H_post = 2 sigmoid(h_post)   H_res = mixing(h_mixing)
///
/// where the mixing is the paper's Sinkhorn-Knopp, which makes H_res doubly stochastic, or another one by name.
///
/// Differences from the paper: the RMS norm's weight is folded into phi, and the division by r follows the product, as
/// in the paper's own kernels (eq. 14-19); the initialization below, which the paper leaves open.
///
/// At the start phi = 0, alpha = 0.01 and the bias makes H_pre = 1/n, H_post = 1 and H_res the identity or near it.
/// Where its rows sum to 1, a network of copied streams reduced by their mean then *equals* the pre-norm residual
/// network. Symmetry: copies of one stream get equal gradients, so phi = 0 trains them as copies forever; a small
/// phi_std (0.02) sets them apart. No decay belongs on alpha and bias. Upcycling: alpha = 0 and a small phi_std keep
/// the function of the residual network to rounding, and alpha, which has a gradient then, sets the copies apart.
struct ManifoldConstrainedHC : StreamConnection<ManifoldConstrainedHC> {
  Var phi;                ///< [n C, 2 n + m], m = mixing.logits()
  Var alpha;              ///< [3]: pre, post and, where it has logits, mixing
  Var bias;               ///< [2 n + m]
  std::int64_t channels;  ///< C, of each stream
  ManifoldConstrainedHCSettings settings;
  Mixing mixing;

  /// Throws ValueError unless channels, streams, keep_every >= 1, phi_std >= 0 and the mixing exists and supports n.
  ManifoldConstrainedHC(std::int64_t channels, std::int64_t streams, Rng& rng,
                        const ManifoldConstrainedHCSettings& settings = {});

  std::int64_t streams() const { return mixing.n(); }               ///< their number, n
  std::int64_t keep_every() const { return settings.keep_every; }   ///< see Streams
  StreamReduction reduction() const { return settings.reduction; }  ///< what close() does

  /// The maps of x [..., n, C], composed of other ops, one set per token: h_pre [..., n], h_post [..., n],
  /// h_res [..., n, n]. Throws ShapeError on other shapes of x.
  StreamMaps maps(const Var& x) const;

  /// The input [..., C] of the next layer, read from x by the maps. Throws ShapeError on other shapes of x.
  Var read(Streams& x) const;

  void params(auto&& visit) {
    visit("phi", phi);
    visit("alpha", alpha);
    visit("bias", bias);
  }

 private:
  MHCMaps dynamic_maps() const;
};

/// Logits [n] whose sigmoids are 1/n.
Tensor mean_logits(std::int64_t n, DType dtype);

/// The bias with H_pre = 1/n, H_post = 1 and the start of the mixing: [pre n | post n | mixing].
Tensor residual_like_bias(const Mixing& mixing, DType dtype);

}  // namespace braid::mhc
