#include <braid/nn/transformer.h>

#include <cmath>

namespace braid::nn {
namespace {

AttentionSettings attention_settings(const TransformerConfig& config) {
  return {.bias = config.attention_bias,
          .rotary = config.positions == PositionKind::rotary,
          .rotary_base = config.rotary_base,
          .rotary_scaling = config.rotary_scaling,
          .rotary_layout = RotaryLayout::halves,
          .kv_heads = config.kv_heads,
          .head_size = config.head_size,
          .qk_norm = config.qk_norm,
          .norm_eps = config.norm_eps,
          .window = config.window,
          .dtype = config.parameters()};
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
  detail::complete("Transformer", config.channels, config.heads, attention_settings(config));
  return config;
}

namespace detail {

NormSettings norm_settings(const TransformerConfig& config) { return {config.norm_eps, config.parameters()}; }

MultiHeadAttention make_attention(const TransformerConfig& config, Rng& rng) {
  return {config.channels, config.heads, rng, attention_settings(config)};
}

MLP make_mlp(const TransformerConfig& config, Rng& rng) {
  const std::int64_t hidden = config.hidden.value_or(config.mlp_ratio * config.channels);
  return {config.channels,
          hidden,
          rng,
          {.activation = config.activation, .bias = config.mlp_bias, .dtype = config.parameters()}};
}

void init_block(const TransformerConfig& config, MultiHeadAttention& attention, MLP& mlp, Rng& rng) {
  const double std = 0.02, residual_std = std / std::sqrt(2.0 * config.layers);
  const auto start = [&](Linear& layer, double scale) {
    layer.weight = init::normal(layer.weight.shape(), scale, rng, config.parameters());
    if (layer.has_bias()) layer.bias = zeros(layer.bias.shape(), config.parameters());
  };
  for (Linear* layer : {&attention.q, &attention.k, &attention.v, &mlp.up}) start(*layer, std);
  if (mlp.gate) start(*mlp.gate, std);
  for (Linear* layer : {&attention.o, &mlp.down}) start(*layer, residual_std);
}

KVCache make_cache(const TransformerConfig& config, std::int64_t batch, std::optional<std::int64_t> room) {
  const std::int64_t tokens = room.value_or(config.context);
  check_value(batch >= 1, "Transformer: a cache must be for at least 1 sequence but is for {}", batch);
  check_value(tokens >= 1 && tokens <= config.context,
              "Transformer: a cache must have room for 1 to {} tokens, the context, but has for {}", config.context,
              tokens);
  return {.batch = batch,
          .room = tokens,
          .length = 0,
          .layers = std::vector<LayerCache>(static_cast<std::size_t>(config.layers))};
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
