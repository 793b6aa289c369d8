#include "deep_transformer.h"

#include <braid/autograd/ops/cross_entropy.h>

namespace braid::stability {

Var DeepTransformer::embed(const Tensor& tokens) const { return network.embed(tokens); }

NextCharacter::NextCharacter(const TaskConfig& sizes, Rng&)
    : sizes_(sizes), corpus_(apps::read_text({}), sizes.context) {}

DeepTransformer NextCharacter::model(const mhc::ConnectionConfig& connection, Rng& rng, Rng& connection_rng) const {
  const nn::TransformerConfig config{.vocab = corpus_.vocab(),
                                     .context = sizes_.context,
                                     .channels = sizes_.channels,
                                     .layers = static_cast<int>(sizes_.sublayers / 2),
                                     .heads = static_cast<int>(sizes_.heads)};
  return {nn::Transformer<mhc::Connection>(
      config, rng, [&](int index) { return mhc::Connection(connection, sizes_.channels, index, connection_rng); })};
}

Batch NextCharacter::sample(Rng& rng) const {
  auto [tokens, targets] = corpus_.sample(sizes_.batch, rng);
  return {std::move(tokens), std::move(targets)};
}

Var NextCharacter::loss(const Var& prediction, const Tensor& targets) { return cross_entropy(prediction, targets); }

}  // namespace braid::stability
