#pragma once
#include <vector>

#include <braid/autograd/tape.h>

namespace braid::mhc {

/// Settings of AttentionResidual.
struct AttentionResidualSettings {
  std::int64_t block = 1;  ///< sublayers whose outputs are summed to one source; 1: each output is a source
  double eps = 1e-6;       ///< of the RMS norm in front of the keys
  DType dtype = DType::f32;
};

/// The state between the sublayers of a network with attention residuals.
struct DepthSources {
  Var x;                     ///< [..., C], the input of the next layer
  std::vector<Var> sources;  ///< the embedding and the blocks' sums of outputs [..., C] so far
};

/// Attention residuals, arXiv:2603.15031: a layer reads the softmax-weighted mean of the embedding and of the outputs
/// of the layers before it, or of blocks of them, in place of their sum:
///
///     x = sum_i softmax_i(query . rms_norm(v_i, norm)) v_i        v_0 the embedding, v_b the sum of block b's outputs
///
/// The last block may be unfinished. These are the paper's equations; the query of a layer is here a parameter of the
/// connection in front of it: with one source its first layer has no choice, and the last connection has the query of
/// the network's output. So every query has a gradient.
///
/// At the start query = 0: x is the mean of the sources, and as norms in front of layers undo the scale, the network is
/// the pre-norm residual network but for the norms' eps. The gradient of norm begins with that of query.
struct AttentionResidual {
  using Stream = DepthSources;

  Var query;           ///< [C], zeros at the start
  Var norm;            ///< [C], ones at the start
  std::int64_t index;  ///< of the sublayer; block divides the first of a block
  AttentionResidualSettings settings;

  /// Throws ValueError unless channels, block >= 1 and index >= 0.
  AttentionResidual(std::int64_t channels, std::int64_t index, const AttentionResidualSettings& settings = {});

  /// `layer` maps [..., C] to [..., C]. Throws ShapeError unless it keeps the shape.
  DepthSources operator()(DepthSources state, auto&& layer) const {
    add(state, layer(state.x));
    return state;
  }

  DepthSources open(const Var& embedding) const { return {embedding, {embedding}}; }
  Var close(const DepthSources& state) const { return state.x; }

  void params(auto&& visit) {
    visit("query", query);
    visit("norm", norm);
  }

 private:
  /// Adds a layer's output to the sources, and reads the next layer's input.
  void add(DepthSources& state, const Var& f) const;
};

}  // namespace braid::mhc
