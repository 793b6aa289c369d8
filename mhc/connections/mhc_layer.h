#pragma once
#include <braid/mhc/connections/detail/evaluation_cache.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <braid/mhc/streams/stream_connection.h>

namespace braid::mhc {

/// The initial maps of an MHCLayer.
enum class MHCLayerInit {
  identity,  ///< out = x but for 1e-5: raw gates and off-diagonal h_res_raw at -12, the diagonal at 0
  residual,  ///< out = x + layer of the streams' mean, nearly: H_pre = 1/n, H_post = 1, H_res = sinkhorn_knopp(4 I)
};

/// Settings of MHCLayer.
struct MHCLayerSettings {
  int sinkhorn_iterations = 20;  ///< normalizations of rows and columns
  double eps = 1e-5;             ///< of the RMS norm
  MHCLayerInit init = MHCLayerInit::identity;
  DType dtype = DType::f32;
};

/// A static manifold-constrained hyper-connection whose layer is an RMS norm, as in GPU packages. x [..., n, C]:
///
///     u = rms_norm(sum_i sigmoid(h_pre_raw_i) x_i, rms_weight, eps)
///     out_i = sum_j M_ij x_j + 2 sigmoid(h_post_raw_i) u        M = sinkhorn_knopp(h_res_raw), columns exact
///
/// Around a further layer, `layer(x, f)` puts f(u) in the place of u: static mHC with a built-in norm. As the
/// connection of a network it needs `MHCLayerInit::residual`, because almost no gradient passes a gate of
/// sigmoid(-12). Differs from arXiv:2512.24880: maps don't depend on the token, and columns are normalized last.
///
/// On constants (evaluation) M is computed once and reused until h_res_raw's bits change.
struct MHCLayer : StreamConnection<MHCLayer> {
  Var h_pre_raw, h_post_raw;  ///< [n]
  Var h_res_raw;              ///< [n, n]
  Var rms_weight;             ///< [C], ones at the start
  MHCLayerSettings settings;

  /// Throws ValueError unless streams, channels, sinkhorn_iterations >= 1.
  MHCLayer(std::int64_t streams, std::int64_t channels, const MHCLayerSettings& settings = {});

  std::int64_t streams() const { return h_pre_raw.size(0); }    ///< their number, n
  std::int64_t channels() const { return rms_weight.size(0); }  ///< C, of each stream

  Var mixing_matrix() const;  ///< M [n, n], doubly stochastic
  StreamMaps maps() const;    ///< of all tokens

  /// x [..., n, C] -> [..., n, C]. Throws ShapeError on other shapes.
  Var operator()(const Var& x) const;
  using StreamConnection::operator();

  /// The input [..., C] of the next layer: the norm of what the maps read from x. Throws ShapeError on other shapes.
  Var read(Streams& x) const;

  void params(auto&& visit) {
    visit("h_pre_raw", h_pre_raw);
    visit("h_post_raw", h_post_raw);
    visit("h_res_raw", h_res_raw);
    visit("rms_weight", rms_weight);
  }

 private:
  EvaluationCache mixing_cache_;
};

/// An MHCLayer for sequences whose last axis holds all streams: [B, S, n C] -> [B, S, n C]. Its parameters have the
/// layer's names. Throws ShapeError unless the last axis has size n C.
struct FlatMHCLayer {
  MHCLayer layer;

  FlatMHCLayer(std::int64_t streams, std::int64_t channels, const MHCLayerSettings& settings = {})
      : layer(streams, channels, settings) {}  ///< as MHCLayer's

  Var operator()(const Var& x) const;  ///< x [B, S, n C] -> [B, S, n C]

  void params(auto&& visit) { layer.params(visit); }
};

}  // namespace braid::mhc
