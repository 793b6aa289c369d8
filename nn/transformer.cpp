#include <braid/nn/transformer.h>

#include <algorithm>
#include <cmath>

namespace braid::nn {
namespace {

AttentionSettings attention_settings(const TransformerConfig& config, std::size_t layer) {
  return {.bias = config.attention_bias,
          .rotary = config.positions == PositionKind::rotary,
          .rotary_base = config.rotary_base,
          .rotary_scaling = config.rotary_scaling,
          .rotary_layout = RotaryLayout::halves,
          .kv_heads = config.kv_heads,
          .head_size = config.head_size,
          .qk_norm = config.qk_norm,
          .norm_eps = config.norm_eps,
          .window = config.windows.empty() ? config.window : config.windows[layer % config.windows.size()],
          .scale = config.attention_scale,
          .softcap = config.attention_softcap,
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
  for (std::size_t layer = 0; layer == 0 || layer < config.windows.size(); ++layer)
    detail::complete("Transformer", config.channels, config.heads, attention_settings(config, layer));
  if (config.experts) checked(*config.experts);
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

NormSettings norm_settings(const TransformerConfig& config) {
  return {config.norm_eps, config.parameters(), config.norm_offset};
}

MultiHeadAttention make_attention(const TransformerConfig& config, int layer, Rng& rng) {
  return {config.channels, config.heads, rng, attention_settings(config, static_cast<std::size_t>(layer))};
}

FeedForward make_feed_forward(const TransformerConfig& config, Rng& rng) {
  const std::int64_t hidden = config.hidden.value_or(config.mlp_ratio * config.channels);
  const MLPSettings mlp{.activation = config.activation, .bias = config.mlp_bias, .dtype = config.parameters()};
  if (!config.experts) return MLP(config.channels, hidden, rng, mlp);
  ExpertsSettings experts = *config.experts;
  experts.mlp = mlp;
  return Experts(config.channels, hidden, rng, experts);
}

void init_block(const TransformerConfig& config, MultiHeadAttention& attention, FeedForward& mlp, Rng& rng) {
  const double std = 0.02, residual_std = std / std::sqrt(2.0 * config.layers);
  std::vector<Linear*> inside{&attention.q, &attention.k, &attention.v}, into_stream{&attention.o};
  const auto add = [&](MLP& each) {
    inside.push_back(&each.up);
    if (each.gate) inside.push_back(&*each.gate);
    into_stream.push_back(&each.down);
  };
  const auto start = [&](Linear& layer, double scale) {
    layer.weight = init::normal(layer.weight.shape(), scale, rng, config.parameters());
    if (layer.has_bias()) layer.bias = zeros(layer.bias.shape(), config.parameters());
  };
  Experts* const experts = std::get_if<Experts>(&mlp.layer);
  if (experts == nullptr) add(std::get<MLP>(mlp.layer));
  if (experts != nullptr) std::ranges::for_each(experts->experts, add);
  if (experts != nullptr && experts->shared) add(*experts->shared);
  for (Linear* layer : inside) start(*layer, std);
  for (Linear* layer : into_stream) start(*layer, residual_std);
  if (experts != nullptr) experts->router = init::normal(experts->router.shape(), std, rng, config.parameters());
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
