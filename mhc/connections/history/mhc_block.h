#pragma once
#include <utility>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/mhc/connections/history/mhc_skip.h>

namespace braid::mhc {

/// A layer followed by a skip connection. The caller owns the history, one for a stack of blocks.
/// Any callable is a layer; the parameters of one that is a module are visited under "layer".
template <class Layer>
struct MHCBlock {
  Layer layer;
  MHCSkip skip;

  /// Appends x, of any shape, which the layer keeps, then `skip(layer(x), history)`.
  Var operator()(const Var& x, HistoryBuffer& history) const {
    history.append(x);
    return skip(layer(x), history);
  }

  void params(auto&& visit) {
    if constexpr (WithParams<Layer>) visit("layer", layer);
    visit("skip", skip);
  }
};

/// A sequence of layers that share a history; each call starts with an empty one.
template <class Layer>
struct SkipStack {
  std::vector<MHCBlock<Layer>> blocks;  ///< in order of evaluation

  /// x of any shape, which the layers keep.
  Var operator()(const Var& x) const {
    if (blocks.empty()) return x;
    History state = blocks.front().skip.open(x);
    for (const MHCBlock<Layer>& block : blocks) state = block.skip(std::move(state), block.layer);
    return state.x;
  }

  void params(auto&& visit) { visit("blocks", blocks); }
};

/// Threads a history through a list of layers, each followed by its own MHCSkip:
///
///     mhc::SkipStack<nn::MLP> stack = mhc::wrap_layers(std::move(mlps), {.mode = mhc::SkipMode::mhc});
template <class Layer>
SkipStack<Layer> wrap_layers(std::vector<Layer> layers, const MHCSkipSettings& settings = {}) {
  SkipStack<Layer> stack;
  for (Layer& layer : layers) stack.blocks.push_back({std::move(layer), MHCSkip(settings)});
  return stack;
}

/// Calls project() on every module in `node` that has it: MHCSkip brings its parameters back onto their constraint.
/// Call after each optimizer step.
template <Parametric P>
void project(P& node) {
  if constexpr (requires { node.project(); })
    node.project();
  else
    braid::detail::for_each_child(node, [](std::string_view, auto& child) { mhc::project(child); });
}

}  // namespace braid::mhc
