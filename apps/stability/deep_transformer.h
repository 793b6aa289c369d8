#pragma once
#include <braid/mhc/connection.h>
#include <braid/nn/transformer.h>

#include "../common/corpus.h"
#include "deep_mlp.h"

namespace braid::stability {

/// The reference transformer as a stack of sublayers.
struct DeepTransformer {
  nn::Transformer<mhc::Connection> network;

  Var embed(const Tensor& tokens) const;
  Var predict(const Var& state) const { return network.predict(state); }
  void each_sublayer(auto&& visit) const {
    for (const auto& block : network.blocks) {
      visit(block.attention);
      visit(block.mlp);
    }
  }

  void params(auto&& visit) { network.params(visit); }
};

/// Predicting the next character of a text; cross entropy. The text is the default one of train_lm.
class NextCharacter {
 public:
  using Model = DeepTransformer;

  NextCharacter(const TaskConfig& sizes, Rng& rng);

  Model model(const mhc::ConnectionConfig& connection, Rng& rng, Rng& connection_rng) const;
  Batch sample(Rng& rng) const;
  static Var loss(const Var& prediction, const Tensor& targets);

 private:
  TaskConfig sizes_;
  apps::Corpus corpus_;
};

}  // namespace braid::stability
