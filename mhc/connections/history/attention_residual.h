#pragma once
#include <tuple>
#include <vector>

#include <braid/mhc/connections/residual_connection.h>
#include <braid/mhc/ops/attention_residual.h>

namespace braid::mhc {

/// Settings of AttentionResidual.
struct AttentionResidualSettings {
  std::int64_t block = 1;  ///< sublayers whose outputs are summed to one source; 1: each output is a source
  double eps = 1e-6;       ///< of the RMS norm in front of the query
  DType dtype = DType::f32;
};

/// The state between the sublayers of a network with attention residuals.
struct DepthSources {
  Var x;                     ///< [..., C], the input of the next layer
  std::vector<Var> sources;  ///< the embedding and the blocks' sums of outputs [..., C] so far
};

/// Attention residuals, arXiv:2603.15031: in place of the sum of the embedding and all outputs before it, a layer reads
/// their mean with softmax weights per token:
///
///     x = sum_i weights_i v_i   weights = softmax_i(query . rms_norm(v_i, norm))
///
/// v_0 is the embedding, v_b the sum of block b, of which the last may be unfinished. A layer's query is the parameter
/// of the connection in front of it: so the first layer, which has one source, has none, and the last connection has
/// that of the network's output.
///
/// At the start query = 0, and x is the mean of the sources. Norms in front of layers undo its scale, so that the
/// network is the pre-norm residual network but for their eps. The norm has a gradient once query is not zero.
struct AttentionResidual {
  using Stream = DepthSources;

  Var query;           ///< [C], zeros at the start
  Var norm;            ///< [C], ones at the start
  std::int64_t index;  ///< of the sublayer; those that settings.block divides begin a block
  AttentionResidualSettings settings;

  /// Throws ValueError unless channels, block >= 1 and index >= 0.
  AttentionResidual(std::int64_t channels, std::int64_t layer_index, const AttentionResidualSettings& chosen = {})
      : index(layer_index), settings(chosen) {
    check_value(channels >= 1, "AttentionResidual: channels must be >= 1 but is {}", channels);
    check_value(index >= 0, "AttentionResidual: index must be >= 0 but is {}", index);
    check_value(settings.block >= 1, "AttentionResidual: block must be >= 1 but is {}", settings.block);
    query = zeros({channels}, settings.dtype);
    norm = ones({channels}, settings.dtype);
  }

  /// `layer` maps [..., C] to [..., C]. Throws ShapeError unless it keeps the shape.
  DepthSources operator()(DepthSources state, auto&& layer) const {
    const Var f = layer(state.x);
    check_shape(f.shape() == state.x.shape(), "AttentionResidual: layer must keep the shape {} but returned {}",
                state.x.shape(), f.shape());
    if (ConnectionHook* hook = ConnectionHook::active())  // every source is passed on as it is
      hook->record(ResidualConnection::identity_maps(f.dtype()), expand_dims(f, -2));
    if (index % settings.block == 0)
      state.sources.push_back(f);
    else
      state.sources.back() = state.sources.back() + f;
    std::tie(state.x, state.sources) = attention_residual_in_turn(query, norm, std::move(state.sources), settings.eps);
    return state;
  }

  DepthSources open(const Var& embedding) const { return {embedding, {embedding}}; }  ///< embedding [..., C]
  Var close(const DepthSources& state) const { return state.x; }                      ///< [..., C]

  void params(auto&& visit) {
    visit("query", query);
    visit("norm", norm);
  }
};

}  // namespace braid::mhc
