#pragma once
#include <braid/core/random.h>
#include <braid/mhc/ops/mhc_read.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <braid/mhc/path.h>
#include <braid/mhc/stream_maps.h>

namespace braid::mhc {

struct ManifoldConstrainedHCSettings {
  int sinkhorn_iterations = 20;
  Marginal exact = Marginal::rows;
  double eps = 1e-6;   ///< of the RMS norm in front of the maps
  double phi_std = 0;  ///< phi ~ N(0, phi_std^2); see symmetry below
  StreamReduction reduction = StreamReduction::mean;
  Path path = Path::automatic;
  std::int64_t keep_every = 1;  ///< of the fused path in a stack: see FusedStream
  DType dtype = DType::f32;
};

/// Manifold-constrained hyper-connections (mHC), arXiv:2512.24880, eq. 3, 7-9:
/// `out = H_res x + H_post^T layer(H_pre x)` on n streams x [..., n, C], with maps of the token
///
///     h = alpha (x_flat phi) / r + bias,   r = sqrt(mean(x_flat^2) + eps),   columns of phi: pre n | post n | res n^2
///     H_pre = sigmoid(h_pre)   H_post = 2 sigmoid(h_post)   H_res = sinkhorn_knopp(h_res), doubly stochastic
///
/// Differences from the paper: the RMS norm's weight is folded into phi, and the division by r follows the product, as
/// in the paper's own kernels (eq. 14-19); the initialisation below, which the paper leaves open.
///
/// At the start phi = 0, alpha = 0.01 and the bias makes H_pre = 1/n, H_post = 1 and H_res near the identity. A network
/// of copied streams reduced by their mean then *equals* the pre-norm residual network. Symmetry: copies of one stream
/// get equal gradients, so phi = 0 trains them as copies for ever; a small phi_std (0.02) sets them apart.
/// No decay belongs on alpha and bias.
struct ManifoldConstrainedHC {
  using Stream = Var;

  Var phi;    // [n C, n (n + 2)]
  Var alpha;  // [3]: pre, post, res
  Var bias;   // [n (n + 2)]
  std::int64_t channels, streams;
  ManifoldConstrainedHCSettings settings;

  /// Throws ValueError unless channels, streams, sinkhorn_iterations >= 1.
  ManifoldConstrainedHC(std::int64_t channels, std::int64_t streams, Rng& rng,
                        const ManifoldConstrainedHCSettings& settings = {});

  /// For x [..., n, C], one set a token: h_pre [..., n], h_post [..., n], h_res [..., n, n].
  /// Throws ShapeError on other shapes of x.
  StreamMaps maps(const Var& x) const;

  /// `layer` maps [..., C] to [..., C]; anything callable.
  Var operator()(const Var& x, auto&& layer) const {
    FusedStream stream(x);
    step(stream, layer);
    return stream.streams();
  }

  /// The same on streams whose last write may be pending: where connections follow each other, the fused path does the
  /// write of one and the read of the next in one pass.
  void step(FusedStream& stream, auto&& layer) const {
    check_streams("ManifoldConstrainedHC", stream.shape(), streams, channels);
    if (path() == Path::fused) {
      stream.write(layer(stream.read(fused())));
    } else {
      const Var x = stream.streams();
      stream = FusedStream(connect(maps(x), x, layer, Path::reference));
    }
  }

  /// Which implementation runs now; telemetry looks at the maps, which only the reference has.
  Path path() const { return Telemetry::active() ? Path::reference : choose_path(settings.path); }

  Var open(const Var& embedding) const { return expand_streams(embedding, streams); }
  Var close(const Var& x) const { return reduce_streams(x, settings.reduction); }

  void params(auto&& visit) {
    visit("phi", phi);
    visit("alpha", alpha);
    visit("bias", bias);
  }

 private:
  FusedMhc fused() const {
    return {phi, alpha, bias, settings.sinkhorn_iterations, settings.exact == Marginal::rows, settings.eps};
  }
};

/// The bias with H_pre = 1/n, H_post = 1 and H_res = sinkhorn_knopp(4 I): [pre n | post n | res n^2].
Tensor residual_like_bias(std::int64_t streams, DType dtype);

}  // namespace braid::mhc
