#pragma once
#include <braid/core/random.h>
#include <braid/mhc/streams/stream_connection.h>

namespace braid::mhc {

/// Settings of GatedResidual and GatedHead.
struct GatedResidualSettings {
  std::int64_t rank = 16;  ///< of the gates
  double norm_eps = 1e-6;  ///< of the streams' RMS norms
  double std = 0.02;       ///< initial standard deviation of the gates' two weights
  DType dtype = DType::f32;
};

/// The parameters of the gates of n streams of C channels, named as in the checkpoints of Qwen4-exp.
struct GatedWeights {
  Var norm;  ///< [n C], zeros at the start: the weights of the streams' RMS norms minus 1
  Var down;  ///< [r, n C], N(0, std^2) at the start
  Var up;    ///< [n C, r], N(0, std^2) at the start

  void params(auto&& visit) {
    visit("hc_norm.weight", norm);
    visit("input_mix_weight_down.weight", down);
    visit("input_mix_weight_up.weight", up);
  }
};

/// The gated residual of Qwen4-exp: `out_i = x_i + post_i layer(u)` on n streams x [..., n, C], which are never mixed.
/// A layer reads the mean of the normed streams, with a gate of rank r for every channel of every stream:
///
///     normed = (x_i / sqrt(mean(x_i^2) + eps))_i (1 + norm)       gates = sigmoid(up silu(down normed / n))
///     u = mean_i gates_i normed_i                                post = 2 sigmoid(inject normed / n)
///
/// Source: the Qwen4-exp module of Hugging Face's transformers. The checkpoints leave the initialization open:
///
/// At the start post = 1 and the gates are 1/2 but for the noise of the small random weights, so that copied streams
/// stay copies of x + layer(rms_norm(x) / 2). A layer that begins with a norm cancels the half: the
/// network is then the pre-norm residual network but for that noise (0.4 % of u at n = 4, C = 1024, r = 16) and the
/// norms' eps. With up = 0 it would be so exactly, but `down` would have no gradient. Symmetry: where streams are
/// copies and what follows treats them alike, as in front of their mean, all rows of inject get one gradient.
struct GatedResidual : StreamConnection<GatedResidual> {
  GatedWeights gates;     ///< of the read
  Var inject;             ///< [n, n C], zeros at the start
  std::int64_t channels;  ///< C, of each stream
  GatedResidualSettings settings;

  /// Throws ValueError unless channels, streams, rank >= 1 and std >= 0.
  GatedResidual(std::int64_t channels, std::int64_t streams, Rng& rng, const GatedResidualSettings& settings = {});

  std::int64_t streams() const { return inject.size(0); }  ///< their number, n

  /// The input [..., C] of the next layer. Throws ShapeError unless x is [..., n, C].
  Var read(Streams& x) const;

  void params(auto&& visit) {
    gates.params(visit);
    visit("block_inject_weight.weight", inject);
  }
};

/// The head of Qwen4-exp, in front of its last norm: streams [..., n, C] become [..., C] as a layer reads them. It
/// starts from half the mean of the normed streams.
struct GatedHead {
  GatedWeights gates;     ///< of the read
  std::int64_t channels;  ///< C, of each stream
  GatedResidualSettings settings;

  /// Throws ValueError unless channels, streams, rank >= 1 and std >= 0.
  GatedHead(std::int64_t channels, std::int64_t streams, Rng& rng, const GatedResidualSettings& settings = {});

  std::int64_t streams() const { return gates.norm.size(0) / channels; }  ///< their number, n

  /// Throws ShapeError unless x is [..., n, C].
  Var operator()(const Var& x) const;
  Var operator()(const Streams& x) const { return (*this)(x.value()); }

  void params(auto&& visit) { gates.params(visit); }
};

}  // namespace braid::mhc
