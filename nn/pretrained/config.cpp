#include <braid/nn/pretrained/config.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <braid/core/files/budget.h>
#include <braid/core/utf8.h>
#include <braid/nn/pretrained/detail/families.h>

namespace braid::nn {
namespace {

using detail::kFamilies, detail::kGpt2Activations, detail::kRotaryScalings;
using nlohmann::json;

/// A value as messages quote it. An object's contents are left out, since they may be nested without end.
std::string describe(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return fmt::format("'{}'", excerpt(value.get<std::string>()));
  return value.dump();
}

json parse_object(const std::string& where, const std::string& text) {
  check_nesting(where, text);
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  check<FileError>(!value.is_discarded(), "{}: must be JSON but is not", where);
  check<FileError>(value.is_object(), "{}: must be a JSON object but is {}", where, describe(value));
  return value;
}

/// Settings by name. `otherwise` is the value of one that is absent or null.
class Settings {
 public:
  Settings(std::string where, const json& object) : where_(std::move(where)), object_(object) {}

  const json& get(const char* key) const {
    static const json none;
    const auto found = object_.find(key);
    return found == object_.end() ? none : *found;
  }
  bool has(const char* key) const { return !get(key).is_null(); }
  bool is_null(const char* key) const { return object_.contains(key) && !has(key); }  // to transformers, none

  std::int64_t size(const char* key, std::int64_t otherwise) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const json& value = get(key);
    if (value.is_null()) return otherwise;
    const bool ok =
        value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 && value.get<std::uint64_t>() <= kMost;
    require(ok, key, fmt::format("an integer from 1 to {}", kMost));
    return value.get<std::int64_t>();
  }
  int count(const char* key, std::int64_t otherwise) const { return static_cast<int>(size(key, otherwise)); }

  double positive(const char* key, double otherwise) const {
    const json& value = get(key);
    if (value.is_null()) return otherwise;
    require(value.is_number() && value.get<double>() > 0, key, "a positive number");
    return value.get<double>();
  }

  bool flag(const char* key, bool otherwise) const {
    const json& value = get(key);
    if (value.is_null()) return otherwise;
    require(value.is_boolean(), key, "true or false");
    return value.get<bool>();
  }

  /// The position of the setting in a list of names.
  std::size_t choice(const char* key, const auto& names, std::string_view otherwise = "") const {
    const auto is_it = [&](std::string_view name) { return has(key) ? get(key) == name : name == otherwise; };
    const auto found = std::ranges::find_if(names, is_it);
    require(found != names.end(), key, fmt::format("one of {}", fmt::join(names, ", ")));
    return static_cast<std::size_t>(found - names.begin());
  }

  /// Throws when the setting has another value than the only supported one.
  void only(const char* key, const json& supported) const {
    if (has(key))
      require(get(key) == supported, key, fmt::format("{}, the only supported value,", describe(supported)));
  }

  void require(bool ok, const std::string& key, const std::string& expected) const {
    if (!ok)
      throw FileError(fmt::format("{}: '{}' must be {} but is {}", where_, key, expected, describe(get(key.c_str()))));
  }

  const std::string& where() const { return where_; }

 private:
  std::string where_;
  const json& object_;
};

TransformerConfig gpt2(const Settings& settings) {
  settings.only("scale_attn_weights", true);
  settings.only("scale_attn_by_inverse_layer_idx", false);
  settings.only("add_cross_attention", false);
  TransformerConfig config{.vocab = settings.size("vocab_size", 50257),
                           .context = settings.size("n_positions", 1024),
                           .channels = settings.size("n_embd", 768),
                           .layers = settings.count("n_layer", 12),
                           .heads = settings.count("n_head", 12),
                           .norm = NormKind::layer,
                           .norm_eps = settings.positive("layer_norm_epsilon", 1e-5),
                           .attention_bias = true,
                           .tied_head = settings.flag("tie_word_embeddings", true)};
  if (settings.has("n_inner")) config.hidden = settings.size("n_inner", 0);
  const auto names = kGpt2Activations | std::views::keys;
  config.activation = kGpt2Activations[settings.choice("activation_function", names, "gelu_new")].second;
  return config;
}

/// The scaling that an object of the setting `rope_parameters` or `rope_scaling` describes.
RotaryScaling rotary_scaling(const Settings& rope) {
  const char* key = rope.has("rope_type") ? "rope_type" : "type";
  RotaryScaling scaling{.kind = static_cast<RotaryScaling::Kind>(rope.choice(key, kRotaryScalings, "default"))};
  if (scaling.kind == RotaryScaling::Kind::none) return scaling;
  for (const char* needed : {"factor", "original_max_position_embeddings"})
    rope.require(rope.has(needed), needed, "a positive number");
  scaling.factor = rope.positive("factor", 1);
  scaling.first_context = rope.positive("original_max_position_embeddings", 1);
  if (scaling.kind == RotaryScaling::Kind::llama3) {
    scaling.slow = rope.positive("low_freq_factor", 1);
    scaling.fast = rope.positive("high_freq_factor", 4);
    return scaling;
  }
  scaling.slow = rope.positive("beta_slow", 1);
  scaling.fast = rope.positive("beta_fast", 32);
  scaling.whole_pairs = rope.flag("truncate", true);
  const auto magnitude = [&](const char* name) { return 0.1 * rope.positive(name, 1) * std::log(scaling.factor) + 1; };
  if (rope.has("mscale") && rope.has("mscale_all_dim"))
    scaling.magnitude = magnitude("mscale") / magnitude("mscale_all_dim");
  scaling.magnitude = rope.positive("attention_factor", scaling.magnitude);
  return scaling;
}

/// Sets the rotary positions of a config.
void read_rotary(const Settings& settings, TransformerConfig& config) {
  config.rotary_base = settings.positive("rope_theta", config.rotary_base);
  settings.only("partial_rotary_factor", 1);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!settings.has(key)) continue;
    settings.require(settings.get(key).is_object(), key, "an object");
    const Settings rope(fmt::format("{}: {}", settings.where(), key), settings.get(key));
    rope.only("partial_rotary_factor", 1);
    for (const auto& [name, value] : settings.get(key).items())  // as one for each type of layer
      rope.require(!value.is_structured(), excerpt(name), "a number or text");
    config.rotary_base = rope.positive("rope_theta", config.rotary_base);
    if (const RotaryScaling scaling = rotary_scaling(rope); scaling.kind != RotaryScaling::Kind::none)
      config.rotary_scaling = scaling;
  }
}

/// What the families that are like Llama have unless they say otherwise.
TransformerConfig decoder() {
  return {.vocab = 32000,
          .channels = 4096,
          .layers = 32,
          .heads = 32,
          .norm_eps = 1e-6,
          .positions = PositionKind::rotary,
          .activation = Activation::swiglu,
          .mlp_bias = false};
}

/// The setting `pad_token_id`, which counts from the end if it is negative.
std::optional<std::int64_t> padding_of(const Settings& settings, const TransformerConfig& config) {
  const json& id = settings.get("pad_token_id");
  if (id.is_null()) return settings.is_null("pad_token_id") ? std::nullopt : config.padding;
  settings.require(id.is_number_integer() && -config.vocab <= id && id < config.vocab, "pad_token_id",
                   fmt::format("an integer from {} to {}", -config.vocab, config.vocab - 1));
  const auto token = id.get<std::int64_t>();
  return token < 0 ? token + config.vocab : token;
}

/// All but the rotary positions of a family like Llama. `config`: its defaults; kv_heads as heads where it has none.
TransformerConfig with_sizes(const Settings& settings, TransformerConfig config) {
  const bool gelu = config.activation == Activation::geglu;  // Gemma's
  settings.only("hidden_act", gelu ? "gelu_pytorch_tanh" : settings.get("hidden_act") == "swish" ? "swish" : "silu");
  settings.only("attention_bias", false);
  settings.only("mlp_bias", false);
  config.vocab = settings.size("vocab_size", config.vocab);
  config.context = settings.size("max_position_embeddings", config.context);
  config.channels = settings.size("hidden_size", config.channels);
  config.layers = settings.count("num_hidden_layers", config.layers);
  config.heads = settings.count("num_attention_heads", config.heads);
  config.hidden = settings.size("intermediate_size", *config.hidden);
  config.norm_eps = settings.positive("rms_norm_eps", config.norm_eps);
  config.tied_head = settings.flag("tie_word_embeddings", config.tied_head);
  const bool as_heads = !config.kv_heads || settings.is_null("num_key_value_heads");
  config.kv_heads = settings.count("num_key_value_heads", as_heads ? config.heads : *config.kv_heads);
  if (settings.has("head_dim")) config.head_size = settings.size("head_dim", 0);
  config.padding = padding_of(settings, config);
  return config;
}

TransformerConfig as_llama(const Settings& settings, TransformerConfig config) {
  config = with_sizes(settings, std::move(config));
  read_rotary(settings, config);
  return config;
}

TransformerConfig llama(const Settings& settings) {
  TransformerConfig config = decoder();
  config.context = 2048;
  config.hidden = 11008;
  return as_llama(settings, config);
}

/// The setting `sliding_window`; 0: none.
std::int64_t window_of(const Settings& settings, std::int64_t otherwise) {
  if (settings.is_null("sliding_window") || (otherwise == 0 && !settings.has("sliding_window"))) return 0;
  return settings.size("sliding_window", otherwise);
}

/// Mistral 7B, whose defaults Mixtral shares.
TransformerConfig mistral_decoder() {
  TransformerConfig config = decoder();
  config.context = 131072;
  config.hidden = 14336;
  config.kv_heads = 8;
  return config;
}

TransformerConfig mistral(const Settings& settings) {
  TransformerConfig config = mistral_decoder();
  config.window = window_of(settings, 4096);
  return as_llama(settings, config);
}

TransformerConfig mixtral(const Settings& settings) {
  TransformerConfig config = mistral_decoder();
  config.norm_eps = 1e-5;
  config.rotary_base = 1e6;
  config.window = window_of(settings, 0);
  config.experts = ExpertsSettings{.experts = settings.count("num_local_experts", 8),
                                   .top = settings.count("num_experts_per_tok", 2)};
  return as_llama(settings, config);
}

/// The list `key`: for each layer the place of its kind in a list of names. It may be longer, for layers that are not
/// read.
std::vector<std::size_t> kinds_of(const Settings& settings, const char* key, const auto& names, int layers) {
  const json& kinds = settings.get(key);
  settings.require(kinds.is_array() && std::ssize(kinds) >= layers, key,
                   fmt::format("a list with a kind for each of {} layers", layers));
  std::vector<std::size_t> places;
  for (const json& kind : kinds | std::views::take(layers)) {
    const auto found = std::ranges::find_if(names, [&](const auto& name) { return kind == name; });
    settings.require(found != names.end(), key,
                     fmt::format("one of {} for each layer, not {},", fmt::join(names, ", "), describe(kind)));
    places.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return places;
}

TransformerConfig qwen3(const Settings& settings) {
  settings.only("use_sliding_window", false);
  if (settings.has("layer_types")) {
    const json& types = settings.get("layer_types");
    const bool ok = types.is_array() && std::ranges::all_of(types, [](const json& t) { return t == "full_attention"; });
    settings.require(ok, "layer_types", "full_attention for each layer");
  }
  TransformerConfig config = decoder();
  config.vocab = 151936;
  config.context = 32768;
  config.hidden = 22016;
  config.kv_heads = 32;
  config.head_size = 128;
  config.qk_norm = true;
  return as_llama(settings, config);
}

TransformerConfig qwen3_moe(const Settings& settings) {
  settings.only("use_sliding_window", false);
  settings.only("decoder_sparse_step", 1);
  settings.only("mlp_only_layers", json::array());
  const char* experts = settings.has("num_experts") ? "num_experts" : "num_local_experts";
  TransformerConfig config = decoder();
  config.vocab = 151936;
  config.context = 32768;
  config.channels = 2048;
  config.layers = 24;
  config.hidden = 6144;
  config.kv_heads = 4;
  config.qk_norm = true;
  config.experts = ExpertsSettings{.experts = settings.count(experts, 128),
                                   .top = settings.count("num_experts_per_tok", 8),
                                   .normalized = settings.flag("norm_topk_prob", false)};
  config = as_llama(settings, config);
  config.hidden = settings.size("moe_intermediate_size", 768);
  return config;
}

TransformerConfig gemma2(const Settings& settings) {
  settings.only("hidden_activation", "gelu_pytorch_tanh");
  settings.only("use_bidirectional_attention", false);
  const auto softcap = [&](const char* key, double otherwise) {
    return settings.is_null(key) ? 0 : settings.positive(key, otherwise);
  };
  TransformerConfig config = decoder();
  config.vocab = 256000;
  config.context = 8192;
  config.channels = 2304;
  config.layers = 26;
  config.heads = 8;
  config.hidden = 9216;
  config.kv_heads = 4;
  config.head_size = 256;
  config.activation = Activation::geglu;
  config.tied_head = true;
  config.padding = 0;
  config.norm_offset = 1;
  config.post_norms = true;
  config.attention_softcap = softcap("attn_logit_softcapping", 50);
  config.logits_softcap = softcap("final_logit_softcapping", 30);
  config = as_llama(settings, config);
  config.attention_scale = 1 / std::sqrt(settings.positive("query_pre_attn_scalar", 256));
  config.embedding_scale = std::sqrt(static_cast<float>(config.channels));
  const std::int64_t window = window_of(settings, 4096);
  config.windows = {window, 0};
  if (!settings.has("layer_types")) return config;
  config.windows.clear();
  for (const std::size_t kind :
       kinds_of(settings, "layer_types", std::array{"full_attention", "sliding_attention"}, config.layers))
    config.windows.push_back(kind == 1 ? window : 0);
  return config;
}

/// The kinds of attention by `layer_types`, or by the ratios of older files; without either heavy compression in the
/// first two layers, then by turns.
std::vector<std::size_t> attentions_of(const Settings& settings, int layers) {
  if (settings.has("layer_types")) return kinds_of(settings, "layer_types", detail::kAttentions, layers);
  if (settings.has("compress_ratios")) return kinds_of(settings, "compress_ratios", std::array{0, 4, 128}, layers);
  std::vector<std::size_t> kinds;
  for (int i = 0; i < layers; ++i) kinds.push_back(i > 1 && i % 2 == 1 ? 1 : 2);
  return kinds;
}

/// The rotary positions of DeepSeek-V4: of layers without compression and of those with it.
void read_two_rotaries(const Settings& settings, TransformerConfig& config) {
  const std::int64_t rotated = settings.size("qk_rope_head_dim", 0);
  const double share = rotated > 0 ? static_cast<double>(rotated) / static_cast<double>(*config.head_size) : 0.125;
  config.rotary_share = settings.positive("partial_rotary_factor", share);
  config.rotary_base = settings.positive("rope_theta", config.rotary_base);
  config.compressed_rotary_base = settings.positive("compress_rope_theta", 160000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!settings.has(key)) continue;
    settings.require(settings.get(key).is_object(), key, "an object");
    const Settings both(fmt::format("{}: {}", settings.where(), key), settings.get(key));
    const bool nested = both.get("main").is_object() && both.get("compress").is_object();
    const Settings slow(both.where(), nested ? both.get("compress") : settings.get(key));
    config.compressed_rotary_scaling = rotary_scaling(slow);
    const bool yarn = config.compressed_rotary_scaling.kind == RotaryScaling::Kind::yarn;
    if (yarn && !nested && !slow.has("attention_factor")) config.compressed_rotary_scaling.magnitude = 1;
    if (!nested) continue;
    const Settings fast(both.where(), both.get("main"));
    config.rotary_scaling = rotary_scaling(fast);
    config.rotary_base = fast.positive("rope_theta", config.rotary_base);
    config.compressed_rotary_base = slow.positive("rope_theta", config.compressed_rotary_base);
    config.rotary_share = fast.positive("partial_rotary_factor", config.rotary_share);
    slow.require(slow.positive("partial_rotary_factor", config.rotary_share) == config.rotary_share,
                 "partial_rotary_factor", fmt::format("that of 'main', {},", config.rotary_share));
  }
}

TransformerConfig deepseek_v4(const Settings& settings) {
  settings.only("num_key_value_heads", 1);
  settings.only("n_shared_experts", 1);
  settings.only("norm_topk_prob", true);
  TransformerConfig config = decoder();
  config.vocab = 129280;
  config.context = 1048576;
  config.layers = 43;
  config.heads = 64;
  config.hidden = 2048;
  config.kv_heads = 1;
  config.head_size = 512;
  config = with_sizes(settings, config);
  settings.require(config.layers <= 1000, "num_hidden_layers", "at most 1000");
  config.hidden = settings.size("moe_intermediate_size", *config.hidden);
  config.qk_norm = config.shared_kv = config.attention_sinks = true;
  config.window = settings.size("sliding_window", 128);
  config.query_rank = settings.size("q_lora_rank", 1024);
  config.output_groups = settings.count("o_groups", 8);
  config.output_rank = settings.size("o_lora_rank", 1024);
  config.mlp_limit = settings.positive("swiglu_limit", 10);
  config.experts = ExpertsSettings{
      .experts = settings.count("n_routed_experts", 256),
      .top = settings.count("num_experts_per_tok", 6),
      .shared = 1,
      .routing = static_cast<Routing>(settings.choice("scoring_func", detail::kRoutings, "sqrtsoftplus")),
      .scale = settings.positive("routed_scaling_factor", 1.5),
      .correction = true};
  config.streams = StreamsSettings{.streams = settings.size("hc_mult", 4),
                                   .sinkhorn_iterations = settings.count("hc_sinkhorn_iters", 20),
                                   .eps = settings.positive("hc_eps", 1e-6)};
  settings.require(config.streams->streams <= 64, "hc_mult", "at most 64");
  settings.require(config.streams->sinkhorn_iterations <= 1000, "hc_sinkhorn_iters", "at most 1000");
  read_two_rotaries(settings, config);

  const json& by_kind = settings.get("compress_rates");
  settings.require(by_kind.is_null() || by_kind.is_object(), "compress_rates", "an object");
  const Settings rates(settings.where() + ": compress_rates", by_kind);
  const std::array<std::int64_t, 3> rate{
      0, rates.size(detail::kAttentions[1].data(), settings.size("compress_rate_csa", 4)),
      rates.size(detail::kAttentions[2].data(), settings.size("compress_rate_hca", 128))};
  const CompressionSettings sparse{.rate = rate[1],
                                   .overlapping = true,
                                   .index_heads = settings.count("index_n_heads", 64),
                                   .index_size = settings.size("index_head_dim", 128),
                                   .index_top = settings.size("index_topk", 512)};
  const std::array<CompressionSettings, 3> compressions{{{}, sparse, {.rate = rate[2]}}};
  for (const std::size_t kind : attentions_of(settings, config.layers))
    config.compressions.push_back(compressions[kind]);
  const bool none = settings.get("num_hash_layers") == 0;
  config.token_routed = none ? 0 : std::min(config.layers, settings.count("num_hash_layers", 3));
  if (settings.has("mlp_layer_types")) {
    const std::vector<std::size_t> kinds = kinds_of(settings, "mlp_layer_types", detail::kExpertChoices, config.layers);
    config.token_routed = static_cast<int>(std::ranges::count(kinds, 0U));
    settings.require(std::ranges::is_sorted(kinds), "mlp_layer_types", "hash_moe for the first layers only");
  }
  return config;
}

/// In the order of PretrainedFamily.
constexpr std::array<TransformerConfig (*)(const Settings&), kFamilies.size()> kReaders{
    gpt2, llama, qwen3, mistral, mixtral, qwen3_moe, gemma2, deepseek_v4};

}  // namespace

PretrainedConfig parse_pretrained_config(const std::string& where, const std::string& text) {
  const json object = parse_object(where, text);
  const Settings settings(where, object);
  const auto names = kFamilies | std::views::transform(&detail::FamilyNames::model_type);
  const std::size_t family = settings.choice("model_type", names);
  settings.require(!settings.has("quantization_config"), "quantization_config",
                   "absent, since quantized models are not supported,");
  const TransformerConfig config = kReaders[family](settings);
  try {
    return {static_cast<PretrainedFamily>(family), checked(config)};
  } catch (const ValueError& error) {
    throw FileError(fmt::format("{}: {}", where, error.what()));
  }
}

std::map<std::string, std::string> detail::parse_shard_index(const std::string& where, const std::string& text) {
  const json object = parse_object(where, text);
  const Settings settings(where, object);
  settings.require(settings.get("weight_map").is_object(), "weight_map", "an object");
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : settings.get("weight_map").items()) {
    const std::string path = file.is_string() ? file.get<std::string>() : "";
    const bool beside = path.ends_with(".safetensors") && path.find_first_of(std::string_view("/\\\0", 3)) == path.npos;
    check<FileError>(beside, "{}: '{}' must be in a .safetensors file beside it but is in {}", where, excerpt(name),
                     describe(file));
    files.emplace(name, path);
  }
  return files;
}

}  // namespace braid::nn
