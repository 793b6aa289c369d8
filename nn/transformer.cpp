#include <braid/nn/transformer.h>

#include <algorithm>
#include <cmath>

namespace braid::nn {
namespace {

/// Element `layer` of a list that starts over, or the default of an empty one.
template <class T>
T of_layer(const std::vector<T>& list, std::size_t layer, T otherwise = {}) {
  return list.empty() ? otherwise : list[layer % list.size()];
}

AttentionSettings attention_settings(const TransformerConfig& config, std::size_t layer) {
  const CompressionSettings compression = of_layer(config.compressions, layer);
  const bool compressed = compression.rate > 0;
  return {.bias = config.attention_bias,
          .rotary = config.positions == PositionKind::rotary,
          .rotary_base = compressed ? config.compressed_rotary_base : config.rotary_base,
          .rotary_share = config.rotary_share,
          .rotary_scaling = compressed ? config.compressed_rotary_scaling : config.rotary_scaling,
          .rotary_layout = config.shared_kv ? RotaryLayout::adjacent : RotaryLayout::halves,
          .rotary_trailing = config.shared_kv,
          .kv_heads = config.kv_heads,
          .head_size = config.head_size,
          .qk_norm = config.qk_norm,
          .norm_eps = config.norm_eps,
          .window = of_layer(config.windows, layer, config.window),
          .scale = config.attention_scale,
          .softcap = config.attention_softcap,
          .sinks = config.attention_sinks,
          .value_residual = config.value_residual && layer > 0,
          .shared_kv = config.shared_kv,
          .query_rank = config.query_rank,
          .output_groups = config.output_groups,
          .output_rank = config.output_rank,
          .compression = compression,
          .dtype = config.parameters()};
}

MLPSettings mlp_settings(const TransformerConfig& config) {
  return {config.activation, config.mlp_bias, config.mlp_limit, config.parameters()};
}

ExpertsSettings experts_settings(const TransformerConfig& config, int layer) {
  ExpertsSettings experts = *config.experts;
  experts.mlp = mlp_settings(config);
  if (layer < config.token_routed) experts.correction = false, experts.by_token = config.vocab;
  return experts;
}

}  // namespace

const TransformerConfig& checked(const TransformerConfig& config) {
  auto positive = [](const char* setting, std::int64_t value) {
    check_value(value >= 1, "Transformer: {} must be at least 1 but is {}", setting, value);
  };
  positive("vocab", config.vocab);
  positive("context", config.context);
  positive("channels", config.channels);
  positive("layers", config.layers);
  positive("heads", config.heads);
  positive("mlp_ratio", config.mlp_ratio);
  if (config.hidden) positive("hidden", *config.hidden);
  check_value(!config.padding || (0 <= *config.padding && *config.padding < config.vocab),
              "Transformer: padding must be a token in [0, {}) but is {}", config.vocab, config.padding.value_or(0));
  for (std::size_t layer = 0; layer == 0 || layer < std::max(config.windows.size(), config.compressions.size());
       ++layer)
    detail::complete("Transformer", config.channels, config.heads, attention_settings(config, layer));
  if (config.experts) checked(experts_settings(config, 0));
  check_value(
      0 <= config.token_routed && config.token_routed <= config.layers && (config.token_routed == 0 || config.experts),
      "Transformer: token_routed must be in [0, {}], the layers, and needs experts but is {}", config.layers,
      config.token_routed);
  check_value(std::isfinite(config.mlp_limit) && config.mlp_limit >= 0,
              "Transformer: mlp_limit must be finite and at least 0 but is {}", config.mlp_limit);
  const auto finite = [](const char* setting, double value) {
    check_value(std::isfinite(value), "Transformer: {} must be finite but is {}", setting, value);
  };
  finite("norm_offset", config.norm_offset);
  finite("embedding_scale", config.embedding_scale);
  check_value(std::isfinite(config.logits_softcap) && config.logits_softcap >= 0,
              "Transformer: logits_softcap must be finite and at least 0 but is {}", config.logits_softcap);
  return config;
}

namespace detail {

MultiHeadAttention make_attention(const TransformerConfig& config, int layer, Rng& rng) {
  return {config.channels, config.heads, rng, attention_settings(config, static_cast<std::size_t>(layer))};
}

FeedForward make_feed_forward(const TransformerConfig& config, int layer, Rng& rng) {
  const std::int64_t hidden = config.hidden.value_or(config.mlp_ratio * config.channels);
  if (!config.experts) return MLP(config.channels, hidden, rng, mlp_settings(config));
  return Experts(config.channels, hidden, rng, experts_settings(config, layer));
}

void init_block(const TransformerConfig& config, MultiHeadAttention& attention, FeedForward& mlp, Rng& rng) {
  const double std = 0.02, residual_std = std / std::sqrt(2.0 * config.layers);
  std::vector<Linear*> inside, into_stream;
  const auto add = [&](const std::string& path, Linear& layer) {
    (path == "o" || path == "down" || path.ends_with(".down") ? into_stream : inside).push_back(&layer);
  };
  braid::detail::visit_parts<Linear>(attention, add, "");
  braid::detail::visit_parts<Linear>(mlp, add, "");
  const auto draw = [&](Var& p, double scale) { p = init::normal(p.shape(), scale, rng, config.parameters()); };
  const auto start = [&](Linear& layer, double scale) {
    draw(layer.weight, scale);
    if (layer.has_bias()) layer.bias = init::constant(layer.bias.shape(), 0, config.parameters());
  };
  for (Linear* layer : inside) start(*layer, std);
  for (Linear* layer : into_stream) start(*layer, residual_std);
  if (auto* experts = std::get_if<Experts>(&mlp.layer)) draw(experts->router, std);
  if (attention.o_down) draw(attention.o_down->weight, std);
}

KVCache make_cache(const TransformerConfig& config, std::int64_t batch, std::optional<std::int64_t> room) {
  const std::int64_t tokens = room.value_or(config.context);
  check_value(batch >= 1, "Transformer: a cache must be for at least 1 sequence but is for {}", batch);
  check_value(tokens >= 1 && tokens <= config.context,
              "Transformer: a cache must have room for 1 to {} tokens, the context, but has for {}", config.context,
              tokens);
  return {.batch = batch, .room = tokens, .layers = std::vector<LayerCache>(static_cast<std::size_t>(config.layers))};
}

void check_room(const Tensor& tokens, const KVCache& cache, std::int64_t blocks) {
  check_shape(std::ssize(cache.layers) == blocks, "Transformer: the cache must be of {} blocks but is of {}", blocks,
              cache.layers.size());
  check_shape(tokens.rank() == 2 && tokens.size(0) == cache.batch && tokens.size(1) >= 1,
              "Transformer: tokens must have shape [{}, T >= 1] to match the cache but have {}", cache.batch,
              tokens.shape());
  check_shape(tokens.size(1) <= cache.room - cache.length,
              "Transformer: the cache has room for {} tokens and holds {} but {} more came", cache.room, cache.length,
              tokens.size(1));
}

}  // namespace detail
}  // namespace braid::nn
