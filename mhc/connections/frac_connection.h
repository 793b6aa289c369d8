#pragma once
#include <braid/core/random.h>
#include <braid/mhc/streams/stream_connection.h>

namespace braid::mhc {

/// Settings of FracConnection.
struct FracConnectionSettings {
  std::int64_t fractions = 4;    ///< f, into which the channels of each stream are split
  std::int64_t proposals = 1;    ///< p, sets of H_pre and H_res whose mean is taken; with theta_std > 0 they differ
  std::int64_t views = 1;        ///< v, inputs that a layer gets
  bool constrained = false;      ///< maps of mHC in place of those of hyper-connections
  int sinkhorn_iterations = 20;  ///< of constrained maps
  double eps = 1e-6;             ///< of the RMS norm in front of the maps
  double theta_std = 0;          ///< theta ~ N(0, theta_std^2)
  double alpha = 0.01;           ///< at the start
  DType dtype = DType::f32;
};

/// Frac-connections, arXiv:2503.14125: each of n streams x [..., n, C] is split into f fractions of C / f channels, and
/// a hyper-connection mixes the n f fractions as if they were streams; with n = 1 at the width of the network. With
/// x' = rms_norm(x), fraction by fraction, and a = tanh:
///
///     h_pre_ij  = alpha_0 a(theta_i . x'_j) + b_pre_ij        h_res_ij = alpha_2 a(theta_(v f + i) . x'_j) + b_res_ij
///     h_post_ij = alpha_1 a(theta_post_(i mod f) . x'_k) + b_post_ij,   k is fraction j of the stream of i
///     out = H_res x + H_post layer(H_pre x)
///
/// Constrained as in mHC, a(z) is z, and H_pre = sigmoid(h_pre), H_post = 2 sigmoid(h_post), H_res =
/// sinkhorn_knopp(h_res), columns exact. H_pre and H_res are means over p proposals, each with its own theta. With
/// several views a layer gets that many inputs. Proposals and views are those of the package hyper-connections 0.4.11,
/// whose norm has a weight (theta absorbs it) and whose b_post has fewer entries.
///
/// At the start a layer reads stream layer_index mod n and writes to all, fraction to fraction, and H_res is the
/// identity: the residual network, exactly, or nearly if constrained (sigmoid(8), softmax(8)). theta = 0 unless
/// theta_std says otherwise, without which proposals stay equal.
struct FracConnection : StreamConnection<FracConnection> {
  Var theta;              ///< [p (v f + n f), C / f]
  Var theta_post;         ///< [f, C / f]
  Var alpha;              ///< [3]: pre, post, res
  Var b_pre;              ///< [v f, n f]
  Var b_post;             ///< [n f, f]
  Var b_res;              ///< [n f, n f]
  std::int64_t channels;  ///< C, of each stream
  FracConnectionSettings settings;

  /// Throws ValueError unless streams, fractions, proposals, views, sinkhorn_iterations >= 1, layer_index and theta_std
  /// >= 0 and fractions divides channels.
  FracConnection(std::int64_t channels, std::int64_t streams, std::int64_t layer_index, Rng& rng,
                 const FracConnectionSettings& settings = {});

  std::int64_t streams() const { return b_res.size(0) / settings.fractions; }  ///< their number, n

  /// The maps of x [..., n, C] per token, as matrices: h_pre [..., v f, n f], h_post [..., n f, f],
  /// h_res [..., n f, n f]. Throws ShapeError on other shapes of x.
  StreamMaps maps(const Var& x) const;
  /// A layer's input [..., C], or [v, ..., C] for several views, by the maps of x.
  Var read(const StreamMaps& maps, const Var& x) const;
  /// The streams [..., n, C] after a layer with output f [..., C]. Throws ShapeError or DTypeError unless f fits.
  Var write(const StreamMaps& maps, const Var& x, const Var& f) const;

  /// The streams after a layer. `layer` maps what read() gives to [..., C]; anything callable.
  Var operator()(const Var& x, auto&& layer) const {
    const StreamMaps m = maps(x);
    return write(m, x, layer(read(m, x)));
  }
  Streams operator()(Streams x, auto&& layer) const { return Streams((*this)(x.settle(), layer)); }

  void params(auto&& visit) {
    visit("theta", theta);
    visit("theta_post", theta_post);
    visit("alpha", alpha);
    visit("b_pre", b_pre);
    visit("b_post", b_post);
    visit("b_res", b_res);
  }
};

}  // namespace braid::mhc
