#pragma once
#include <braid/mhc/streams/stream_connection.h>

namespace braid::mhc {

/// Settings of HyperConnection.
struct HyperConnectionSettings {
  bool dynamic = true;  ///< maps depend on the token; else they are b_pre, b_post, b_res
  double eps = 1e-6;    ///< of the RMS norm in front of the maps
  StreamReduction reduction = StreamReduction::mean;
  DType dtype = DType::f32;
};

/// Hyper-connections, arXiv:2409.19606: `out = H_res x + H_post^T layer(H_pre x)` on streams x [..., n, C] with
/// unconstrained maps. With x' = rms_norm(x), stream by stream:
///
///     h_pre_i  = alpha_0 tanh(theta_pre . x'_i) + b_pre_i      h_post_i = alpha_1 tanh(theta_post . x'_i) + b_post_i
///     h_res_ij = alpha_2 tanh(theta_res_i . x'_j) + b_res_ij
///
/// Differences from the paper: an RMS norm without weight (theta absorbs it) where the paper leaves the norm open, one
/// alpha per map, and streams reduced by their mean unless settings say sum. No decay belongs on alpha and b_*.
struct HyperConnection : StreamConnection<HyperConnection> {
  Var theta_pre, theta_post;  ///< [C], zeros at the start: static; undefined when static
  Var theta_res;              ///< [n, C], zeros at the start
  Var alpha;                  ///< [3], 0.01 at the start
  Var b_pre;                  ///< [n], one-hot at (layer_index mod n) at the start
  Var b_post;                 ///< [n], ones at the start
  Var b_res;                  ///< [n, n], the identity at the start
  std::int64_t channels;      ///< C, of each stream
  HyperConnectionSettings settings;

  /// Throws ValueError unless channels, streams >= 1 and layer_index >= 0.
  HyperConnection(std::int64_t channels, std::int64_t streams, std::int64_t layer_index,
                  const HyperConnectionSettings& settings = {});

  std::int64_t streams() const { return b_pre.size(0); }            ///< their number, n
  StreamReduction reduction() const { return settings.reduction; }  ///< what close() does

  /// The maps of x [..., n, C], composed of other ops: one set per token, or one for all when static. Throws ShapeError
  /// on other shapes of x.
  StreamMaps maps(const Var& x) const;

  /// The input [..., C] of the next layer, read from x by the maps. Throws ShapeError on other shapes of x.
  Var read(Streams& x) const;

  void params(auto&& visit) {
    if (settings.dynamic) {
      visit("theta_pre", theta_pre);
      visit("theta_post", theta_post);
      visit("theta_res", theta_res);
      visit("alpha", alpha);
    }
    visit("b_pre", b_pre);
    visit("b_post", b_post);
    visit("b_res", b_res);
  }

 private:
  HyperMaps dynamic_maps() const;
};

}  // namespace braid::mhc
