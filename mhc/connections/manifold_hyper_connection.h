#pragma once
#include <concepts>

#include <braid/core/random.h>
#include <braid/mhc/connections/detail/evaluation_cache.h>
#include <braid/mhc/streams/connection_hook.h>

namespace braid::mhc {

/// Settings of ManifoldHyperConnection.
struct ManifoldHyperConnectionSettings {
  std::int64_t expansion = 2;    ///< number of groups of channels
  int sinkhorn_iterations = 20;  ///< normalizations of rows and columns
  DType dtype = DType::f32;
};

/// A static hyper-connection of fixed width: `dims` channels are `expansion` groups, mixed by maps on a manifold.
///
///     H_pre = sigmoid(h_pre_raw + h_pre_bias)    H_post = 2 sigmoid(h_post_raw + h_post_bias)
///     H_res = sinkhorn_knopp(h_res_raw), columns exact
///
///     pre_scale(x)       = H_pre x                                  group by group
///     post_combine(x, f) = H_post (f + H_res H_pre x)
///
/// x, f [..., dims]. Around a layer: `y = post_combine(x, layer(pre_scale(x)))`.
///
/// This is the equation of published packages, not arXiv:2512.24880's eq. 3: the residual path passes H_pre and H_post
/// too, so that at the default initialization every sublayer halves it. ManifoldConstrainedHC is the paper's.
///
/// On constants (evaluation) the maps are computed once and reused until a parameter or setting changes.
/// Methods throw ShapeError unless the last axis has size dims.
struct ManifoldHyperConnection {
  using Stream = Var;

  Var h_res_raw;                ///< [expansion, expansion], N(0, 1) / sqrt(expansion) at the start
  Var h_pre_raw, h_pre_bias;    ///< [expansion], zeros at the start
  Var h_post_raw, h_post_bias;  ///< [expansion], zeros at the start
  std::int64_t dims;            ///< channels of all groups together
  int sinkhorn_iterations;      ///< normalizations of rows and columns

  /// Throws ValueError unless expansion divides dims and sinkhorn_iterations >= 1.
  ManifoldHyperConnection(std::int64_t dims, Rng& rng, const ManifoldHyperConnectionSettings& settings = {});

  std::int64_t expansion() const { return h_pre_raw.size(0); }  ///< number of groups

  Var h_res() const;   ///< [expansion, expansion]
  Var h_pre() const;   ///< [expansion], in (0, 1)
  Var h_post() const;  ///< [expansion], in (0, 2)

  /// The input of the layer: x [..., dims] -> [..., dims].
  Var pre_scale(const Var& x) const;
  /// The next state, given x and the output of the layer on pre_scale(x): x, layer_output [..., dims] -> [..., dims].
  Var post_combine(const Var& x, const Var& layer_output) const;

  /// The one-stage form of older code: layer_output [..., dims] was computed from x itself, not from pre_scale(x).
  Var operator()(const Var& x, const Var& layer_output) const { return post_combine(x, layer_output); }

  /// The two stages around a layer: x [..., dims] -> [..., dims].
  template <std::invocable<const Var&> Layer>
  Var operator()(const Var& x, Layer&& layer) const {
    if (ConnectionHook* hook = ConnectionHook::active()) hook->record({h_pre(), h_post(), residual_map()}, split(x));
    return post_combine(x, layer(pre_scale(x)));
  }

  Var open(const Var& embedding) const { return embedding; }  ///< embedding [..., dims] -> [..., dims]
  Var close(const Var& x) const { return x; }                 ///< x [..., dims] -> [..., dims]

  void params(auto&& visit) {
    visit("h_res_raw", h_res_raw);
    visit("h_pre_raw", h_pre_raw);
    visit("h_pre_bias", h_pre_bias);
    visit("h_post_raw", h_post_raw);
    visit("h_post_bias", h_post_bias);
  }

 private:
  Var split(const Var& x) const;  // [..., dims] -> [..., expansion, dims / expansion]
  Var residual_map() const;       // H_post H_res H_pre: what x passes

  EvaluationCache h_res_cache_, h_pre_cache_, h_post_cache_;
};

}  // namespace braid::mhc
