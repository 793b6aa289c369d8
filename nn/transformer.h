#pragma once
#include <cmath>
#include <vector>

#include <braid/autograd/ops/cross_entropy.h>
#include <braid/autograd/ops/slice.h>
#include <braid/nn/block.h>
#include <braid/nn/embedding.h>
#include <braid/nn/init.h>

namespace braid::nn {

struct TransformerConfig {
  std::int64_t vocab = 256;
  std::int64_t context = 64;  ///< the most tokens that it reads at once
  std::int64_t channels = 128;
  int layers = 4;
  int heads = 4;
  std::int64_t mlp_ratio = 4;  ///< hidden channels of the MLP / channels
  DType dtype = DType::f32;
};

/// The same config; throws ValueError naming the first setting that is out of its range.
const TransformerConfig& checked(const TransformerConfig& config);

/// The reference transformer, a decoder that predicts the next token: learned positions, pre-norm blocks with RMSNorm
/// (eps 1e-5), causal attention without biases, a GELU MLP with biases, and a head with weights of its own.
/// What connects the sublayers is a type: the plain residual or a hyper-connection. Starts as GPT-2 does: weights
/// N(0, 0.02^2), those that write into the stream smaller by sqrt(2 layers), biases zero.
template <class Connection = Residual>
struct Transformer {
  Embedding embedding;  // [vocab, C]
  Var positions;        // [context, C]
  std::vector<TransformerBlock<Connection>> blocks;
  RMSNorm norm;
  Linear head;  // [vocab, C], no bias

  Transformer(const TransformerConfig& config, Rng& rng) : Transformer(config, rng, [](int) { return Connection{}; }) {}

  /// `make_connection(i)` makes the connection of sublayer i: attention and MLP in turn, 2 * layers in all.
  template <class MakeConnection>
  Transformer(const TransformerConfig& config, Rng& rng, MakeConnection make_connection)
      : embedding(checked(config).vocab, config.channels, rng, config.dtype),
        norm(config.channels, {.dtype = config.dtype}),
        head(config.channels, config.vocab, rng, {.bias = false, .dtype = config.dtype}) {
    const double std = 0.02, residual_std = std / std::sqrt(2.0 * config.layers);
    auto draw = [&](Var& weight, double scale) { weight = init::normal(weight.shape(), scale, rng, config.dtype); };
    draw(embedding.weight, std);
    draw(head.weight, std);
    positions = init::normal({config.context, config.channels}, std, rng, config.dtype);
    for (int i = 0; i < config.layers; ++i) {
      auto& [attention, mlp] = blocks.emplace_back(make_block(config, rng, make_connection, i));
      for (Linear* layer : {&attention.body.q, &attention.body.k, &attention.body.v, &mlp.body.up})
        draw(layer->weight, std);
      for (Linear* layer : {&attention.body.o, &mlp.body.down}) draw(layer->weight, residual_std);
      for (Linear* layer : {&mlp.body.up, &mlp.body.down}) layer->bias = zeros(layer->bias.shape(), config.dtype);
    }
  }

  /// tokens [B, T] i32, T at most the context -> [B, T, vocab].
  Var logits(const Tensor& tokens) const {
    check_shape(tokens.rank() == 2 && tokens.size(1) <= positions.size(0),
                "Transformer: tokens must have shape [B, T <= {}] but have {}", positions.size(0), tokens.shape());
    const Var x = embedding(tokens) + slice(positions, 0, 0, tokens.size(1));
    if (blocks.empty()) return head(norm(x));
    auto stream = blocks.front().attention.connection.open(x);
    for (const auto& block : blocks) stream = block(stream);
    return head(norm(blocks.back().mlp.connection.close(stream)));
  }

  /// The mean cross entropy of targets [B, T] given tokens [B, T].
  Var loss(const Tensor& tokens, const Tensor& targets) const { return cross_entropy(logits(tokens), targets); }

  void params(auto&& visit) {
    visit("embedding", embedding);
    visit("positions", positions);
    visit("blocks", blocks);
    visit("norm", norm);
    visit("head", head);
  }

 private:
  template <class MakeConnection>
  static TransformerBlock<Connection> make_block(const TransformerConfig& config, Rng& rng,
                                                 MakeConnection& make_connection, int index) {
    const auto [channels, dtype] = std::pair(config.channels, config.dtype);
    return {{RMSNorm(channels, {.dtype = dtype}), MultiHeadAttention(channels, config.heads, rng, {.dtype = dtype}),
             make_connection(2 * index)},
            {RMSNorm(channels, {.dtype = dtype}), MLP(channels, config.mlp_ratio * channels, rng, {.dtype = dtype}),
             make_connection(2 * index + 1)}};
  }
};

}  // namespace braid::nn
