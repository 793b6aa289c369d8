#pragma once
#include <optional>
#include <vector>

#include <braid/autograd/ops/cast.h>
#include <braid/autograd/ops/cross_entropy.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/nn/block.h>
#include <braid/nn/embedding.h>
#include <braid/nn/init.h>

namespace braid::nn {

/// How a transformer encodes positions.
enum class PositionKind {
  learned,  ///< a vector per position, added to the embedding
  rotary,   ///< queries and keys are rotated, in the layout RotaryLayout::halves, with shared_kv in adjacent
};

/// The hyper-connections of a released model, see mhc::pretrained_connection().
struct StreamsSettings {
  std::int64_t streams = 4;      ///< n
  int sinkhorn_iterations = 20;  ///< of rows and columns
  double eps = 1e-6;             ///< their hc_eps

  bool operator==(const StreamsSettings&) const = default;  ///< all equal
};

/// Settings of Transformer. The defaults are braid's reference model; load_pretrained() fills in those of a family.
struct TransformerConfig {
  std::int64_t vocab = 256;                        ///< the number of token ids
  std::int64_t context = 64;                       ///< the most tokens per sequence
  std::int64_t channels = 128;                     ///< C, the width of the residual stream
  int layers = 4;                                  ///< blocks
  int heads = 4;                                   ///< heads of queries; must divide channels unless head_size is set
  std::int64_t mlp_ratio = 4;                      ///< hidden channels of the MLP / channels
  std::optional<std::int64_t> hidden = {};         ///< channels inside the MLP; by default mlp_ratio * channels
  std::optional<int> kv_heads = {};                ///< heads of keys and values; by default `heads`
  std::optional<std::int64_t> head_size = {};      ///< by default channels / heads
  NormKind norm = NormKind::rms;                   ///< in front of each sublayer and of the head
  double norm_eps = 1e-5;                          ///< eps of these norms
  PositionKind positions = PositionKind::learned;  ///< how positions are encoded
  double rotary_base = 10000;                      ///< base of the angles of rotary positions
  RotaryScaling rotary_scaling = {};               ///< of these angles
  std::int64_t window = 0;                         ///< if positive: positions see only the last `window`
  std::vector<std::int64_t> windows = {};          ///< in its place, one for each layer; a shorter list starts over
  bool qk_norm = false;                            ///< normalizes each head's queries and keys by RMS norms
  bool value_residual = false;                     ///< of all attentions but the first, see AttentionSettings
  Activation activation = Activation::gelu;
  bool attention_bias = false;                  ///< whether q, k, v and o have one
  bool mlp_bias = true;                         ///< whether the MLP's maps have one
  bool tied_head = false;                       ///< the head's weights are those of the embedding
  std::optional<std::int64_t> padding = {};     ///< a token whose embedding gets no gradient as an input
  std::optional<ExpertsSettings> experts = {};  ///< MLPs as above in place of each MLP; their `mlp` is not read
  double norm_offset = 0;                       ///< added to the norms' weights
  bool post_norms = false;                      ///< a norm behind each sublayer, too
  double embedding_scale = 1;                   ///< of embedded tokens
  double attention_scale = 0;                   ///< of the scores; 0: 1 / sqrt(head_size)
  double attention_softcap = 0;                 ///< if positive, the bound of the scores
  double logits_softcap = 0;                    ///< if positive, that of the logits: softcap tanh(logits / softcap)
  double mlp_limit = 0;                         ///< see MLPSettings
  int token_routed = 0;                         ///< the number of first blocks whose experts a table names by token
  double rotary_share = 1;       ///< part of a head that is rotated: its first, or with shared_kv its last
  bool attention_sinks = false;  ///< this and the next four: see AttentionSettings
  bool shared_kv = false;        ///< with the rotary layout RotaryLayout::adjacent
  std::int64_t query_rank = 0;   ///< of the vector that queries come from
  int output_groups = 0;         ///< parts of the heads on their way to o
  std::int64_t output_rank = 0;  ///< channels of each part
  std::vector<CompressionSettings> compressions = {};  ///< one for each layer; a shorter list starts over
  double compressed_rotary_base = 10000;               ///< rotary_base of layers with compression
  RotaryScaling compressed_rotary_scaling = {};        ///< of these layers
  std::optional<StreamsSettings> streams = {};         ///< what a released model's connections are; not read here
  /// bf16 is the dtype of activations; parameters, their gradients, maps of connections, statistics and losses are f32.
  DType dtype = DType::f32;

  DType parameters() const { return compute_dtype(dtype); }   ///< the dtype of parameters
  bool operator==(const TransformerConfig&) const = default;  ///< all equal
};

/// Returns the config. Throws ValueError naming the first setting that is out of its range.
const TransformerConfig& checked(const TransformerConfig& config);

namespace detail {
inline Norm make_norm(const TransformerConfig& c) {
  return {c.norm, c.channels, {c.norm_eps, c.parameters(), c.norm_offset}};
}
MultiHeadAttention make_attention(const TransformerConfig& config, int layer, Rng& rng);
FeedForward make_feed_forward(const TransformerConfig& config, int layer, Rng& rng);
/// Draws the weights of a block as those of GPT-2, see Transformer.
void init_block(const TransformerConfig& config, MultiHeadAttention& attention, FeedForward& mlp, Rng& rng);
KVCache make_cache(const TransformerConfig& config, std::int64_t batch, std::optional<std::int64_t> room);
/// Throws ShapeError unless the cache is for this number of blocks and has room for the tokens.
void check_room(const Tensor& tokens, const KVCache& cache, std::int64_t blocks);
}  // namespace detail

/// A decoder that predicts the next token: pre-norm blocks of causal attention and an MLP. By default the reference
/// transformer: learned positions, RMSNorm (eps 1e-5), attention without biases, a GELU MLP with biases, and a head
/// with weights of its own. The connection of the sublayers is a type: the plain residual or a hyper-connection. Starts
/// as GPT-2 does: weights N(0, 0.02^2), those that write into the stream smaller by sqrt(2 layers), biases zero.
template <class Connection = Residual>
struct Transformer {
  TransformerConfig config;                          ///< its dtype is that of the parameters at the start
  Embedding embedding;                               ///< [vocab, C]
  Var positions;                                     ///< [context, C], learned ones only
  std::vector<TransformerBlock<Connection>> blocks;  ///< in their order
  Norm norm;
  std::optional<Linear> head;  ///< [vocab, C], no bias; a tied head is the embedding

  /// Throws as checked(), and ValueError or ShapeError for sizes that modules refuse.
  Transformer(const TransformerConfig& settings, Rng& rng)
      : Transformer(settings, rng, [](int) { return Connection{}; }) {}

  /// `make_connection(i)` makes the connection of sublayer i: attention and MLP in turn, 2 * layers in all.
  Transformer(const TransformerConfig& settings, Rng& rng, auto make_connection)
      : config(checked(settings)),
        embedding(config.vocab, config.channels, rng, config.parameters()),
        norm(detail::make_norm(config)) {
    embedding.padding = config.padding;
    if (!config.tied_head)
      head.emplace(config.channels, config.vocab, rng, LinearSettings{.bias = false, .dtype = config.parameters()});
    const double std = 0.02;
    embedding.weight = init::normal(embedding.weight.shape(), std, rng, config.parameters());
    if (head) head->weight = init::normal(head->weight.shape(), std, rng, config.parameters());
    if (config.positions == PositionKind::learned)
      positions = init::normal({config.context, config.channels}, std, rng, config.parameters());
    for (int i = 0; i < config.layers; ++i) {
      auto& [attention, mlp] = blocks.emplace_back(TransformerBlock<Connection>{
          {detail::make_norm(config), detail::make_attention(config, i, rng), make_connection(2 * i)},
          {detail::make_norm(config), detail::make_feed_forward(config, i, rng), make_connection(2 * i + 1)}});
      if (config.post_norms) attention.post_norm = mlp.post_norm = detail::make_norm(config);
      detail::init_block(config, attention.body, mlp.body, rng);
    }
  }

  /// tokens [B, T] i32, T at most the context -> [B, T, vocab]. Throws ShapeError for another shape, DTypeError for
  /// another dtype, ValueError for an id out of range.
  Var logits(const Tensor& tokens) const {
    Var first;
    return predict(run(embed(tokens), [&](const auto& block, const auto& stream) {
      return block(stream, tokens, AttentionCall{.first_values = &first});
    }));
  }

  /// The mean cross entropy of targets [B, T] given tokens [B, T], both i32: a scalar, in f32 for bf16.
  Var loss(const Tensor& tokens, const Tensor& targets) const { return cross_entropy(logits(tokens), targets); }

  /// A cache for `batch` sequences of up to `room` tokens, by default the context. Throws ValueError unless batch >= 1
  /// and room is in [1, context].
  KVCache make_cache(std::int64_t batch, std::optional<std::int64_t> room = {}) const {
    return detail::make_cache(config, batch, room);
  }

  /// The logits [B, vocab] of the token after `tokens` [B, T >= 1] i32, which continue the tokens of the cache and are
  /// added to it. Under a BatchInvariant scope, the bits are those of logits() for all tokens at once. Throws as
  /// logits() does, ShapeError unless tokens and cache fit each other, ValueError when the cache has forgotten what
  /// they see; then the cache has not changed.
  Tensor next_logits(const Tensor& tokens, KVCache& cache) const {
    detail::check_room(tokens, cache, std::ssize(blocks));
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].attention.body.check_cache(cache.layers[i], cache.length);
    std::size_t layer = 0;
    Var first;
    const Var x = run(embed(tokens, cache.length), [&](const auto& block, const auto& stream) {
      return block(stream, tokens, cache.layers[layer++], cache.length, &first);
    });
    const Tensor logits = predict(select(x, 1, -1));
    cache.length += tokens.size(1);
    return logits;
  }

  /// The input of the first connection: tokens [B, T] i32, from position `first` on -> [B, T, C], in bf16 if that is
  /// config.dtype and parameters are f32. Throws as logits() does, ValueError when first < 0.
  Var embed(const Tensor& tokens, std::int64_t first = 0) const {
    check_value(first >= 0, "Transformer: first must be >= 0 but is {}", first);
    check_shape(tokens.rank() == 2 && tokens.size(1) <= config.context - first,
                "Transformer: tokens must have shape [B, T <= {}] but have {}", config.context - first, tokens.shape());
    Var x = embedding(tokens);
    if (config.embedding_scale != 1) x = x * config.embedding_scale;
    if (positions.value().defined()) x = x + slice(positions, 0, first, first + tokens.size(1));
    return config.dtype == DType::bf16 && x.dtype() == DType::f32 ? cast(x, DType::bf16) : x;
  }
  /// The norm and the head: the output of the last connection, x [..., C] -> logits [..., vocab].
  Var predict(const Var& x) const {
    const Var logits = head ? (*head)(norm(x)) : linear(norm(x), embedding.weight);
    const double cap = config.logits_softcap;
    return cap > 0 ? cap * tanh(logits / cap) : logits;
  }

  /// A copy for inference with activations of bf16: Linears hold their weights as each product would round them, and a
  /// tied head has its own. The bits are those of config.dtype bf16, in half the memory and, for few tokens, in less
  /// time. Throws DTypeError unless parameters are f32.
  Transformer in_bf16() const {
    check_dtype(embedding.weight.dtype() == DType::f32,
                "Transformer: parameters must be f32 to be rounded to bf16 but are {}", name(embedding.weight.dtype()));
    Transformer copy = *this;
    copy.config.dtype = DType::bf16;
    if (!head) {
      const init::Placeholders until_set;
      Rng unused;
      copy.head.emplace(config.channels, config.vocab, unused, LinearSettings{.bias = false});
      copy.head->weight = embedding.weight;
    }
    const auto round = [](const std::string&, auto& layer) { layer.weight = layer.weight.value().to(DType::bf16); };
    braid::detail::visit_parts<Linear>(copy, round, "");
    braid::detail::visit_parts<GroupedLinear>(copy, round, "");
    return copy;
  }

  void params(auto&& visit) {
    visit("embedding", embedding);
    if (positions.value().defined()) visit("positions", positions);
    visit("blocks", blocks);
    visit("norm", norm);
    if (head) visit("head", *head);
  }

 private:
  /// Applies `step(block, stream)` for all blocks in turn, from x [B, T, C].
  Var run(const Var& x, auto&& step) const {
    if (blocks.empty()) return x;
    auto stream = blocks.front().attention.connection.open(x);
    for (const auto& block : blocks) stream = step(block, stream);
    return blocks.back().mlp.connection.close(stream);
  }
};

}  // namespace braid::nn
