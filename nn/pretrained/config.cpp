#include <braid/nn/pretrained/config.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ranges>
#include <string_view>
#include <type_traits>
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
  if (value.is_structured()) return value.is_object() ? "an object" : "a list";
  return value.is_string() ? fmt::format("'{}'", excerpt(value.get<std::string>())) : value.dump();
}

json parse_object(const std::string& where, const std::string& text) {
  check_nesting(where, text);
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  check<FileError>(!value.is_discarded(), "{}: must be JSON but is not", where);
  check<FileError>(value.is_object(), "{}: must be a JSON object but is {}", where, describe(value));
  return value;
}

/// The defaults of transformers: those that all families like Llama share, then in the order of PretrainedFamily.
constexpr const char* kDecoderDefaults =
    R"({"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "rms_norm_eps": 1e-6})";
constexpr std::array<const char*, kFamilies.size()> kDefaults{
    R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
        "activation_function": "gelu_new", "tie_word_embeddings": true})",
    R"({"max_position_embeddings": 2048, "intermediate_size": 11008})",
    R"({"vocab_size": 151936, "max_position_embeddings": 32768, "intermediate_size": 22016, "num_key_value_heads": 32,
        "head_dim": 128})",
    R"({"max_position_embeddings": 131072, "intermediate_size": 14336, "num_key_value_heads": 8,
        "sliding_window": 4096})",
    R"({"max_position_embeddings": 131072, "intermediate_size": 14336, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
        "rope_theta": 1e6, "num_local_experts": 8, "num_experts_per_tok": 2})",
    R"({"vocab_size": 151936, "max_position_embeddings": 32768, "hidden_size": 2048, "num_hidden_layers": 24,
        "intermediate_size": 6144, "num_key_value_heads": 4, "moe_intermediate_size": 768, "num_local_experts": 128,
        "num_experts_per_tok": 8, "norm_topk_prob": false})",
    R"({"vocab_size": 256000, "max_position_embeddings": 8192, "hidden_size": 2304, "num_hidden_layers": 26,
        "num_attention_heads": 8, "intermediate_size": 9216, "num_key_value_heads": 4, "head_dim": 256,
        "tie_word_embeddings": true, "pad_token_id": 0, "attn_logit_softcapping": 50, "final_logit_softcapping": 30,
        "query_pre_attn_scalar": 256, "sliding_window": 4096})",
    R"({"vocab_size": 129280, "max_position_embeddings": 1048576, "num_hidden_layers": 43, "num_attention_heads": 64,
        "intermediate_size": 2048, "num_key_value_heads": 1, "head_dim": 512, "sliding_window": 128,
        "q_lora_rank": 1024, "o_groups": 8, "o_lora_rank": 1024, "swiglu_limit": 10, "n_routed_experts": 256,
        "num_experts_per_tok": 6, "scoring_func": "sqrtsoftplus", "routed_scaling_factor": 1.5, "num_hash_layers": 3,
        "compress_rope_theta": 160000, "compress_rate_csa": 4, "compress_rate_hca": 128, "index_n_heads": 64,
        "index_head_dim": 128, "index_topk": 512})"};

/// Settings by name. One that is absent or null has its default.
class Settings {
 public:
  Settings(std::string where, const json& object, json defaults = {})
      : where_(std::move(where)), object_(object), defaults_(std::move(defaults)) {}

  const json& get(const char* key) const {
    static const json none;
    for (const json* source : {&object_, &defaults_})
      if (const auto found = source->find(key); found != source->end() && !found->is_null()) return *found;
    return none;
  }
  bool has(const char* key) const { return !get(key).is_null(); }

  /// Sets `value` if there is a setting: a positive integer, a positive number or a flag.
  template <class T>
  void operator()(const char* key, T& value) const {
    const json& given = get(key);
    if (given.is_null()) return;
    if constexpr (std::is_same_v<T, bool>) {
      require(given.is_boolean(), key, "true or false");
    } else if constexpr (std::is_same_v<T, double>) {
      require(given.is_number() && given.get<double>() > 0, key, "a positive number");
    } else {
      constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
      const bool ok =
          given.is_number_unsigned() && given.get<std::uint64_t>() >= 1 && given.get<std::uint64_t>() <= kMost;
      require(ok, key, fmt::format("an integer from 1 to {}", kMost));
    }
    value = given.get<T>();
  }
  /// The same of one that null turns off, whatever its default.
  void nullable(const char* key, auto& value) const {
    if (!is_none(key)) (*this)(key, value);
  }
  bool is_none(const char* key) const { return object_.contains(key) && object_.at(key).is_null(); }

  template <class T>
  T value(const char* key, T otherwise) const {
    (*this)(key, otherwise);
    return otherwise;
  }

  /// The settings of an object, none if it is absent.
  Settings object(const char* key) const {
    require(!has(key) || get(key).is_object(), key, "an object");
    return {fmt::format("{}: {}", where_, key), get(key)};
  }

  /// The position of the setting in a list of names.
  std::size_t choice(const char* key, const auto& names) const {
    const auto found = std::ranges::find_if(names, [&](std::string_view name) { return get(key) == name; });
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
  json defaults_;
};

TransformerConfig gpt2(const Settings& settings) {
  settings.only("scale_attn_weights", true);
  settings.only("scale_attn_by_inverse_layer_idx", false);
  settings.only("add_cross_attention", false);
  TransformerConfig config{.norm = NormKind::layer, .attention_bias = true};
  detail::gpt2_fields(settings, config);
  if (settings.has("n_inner")) settings("n_inner", config.hidden.emplace());
  const auto names = kGpt2Activations | std::views::keys;
  config.activation = kGpt2Activations[settings.choice("activation_function", names)].second;
  return config;
}

/// The scaling that an object of the setting `rope_parameters` or `rope_scaling` describes.
RotaryScaling rotary_scaling(const Settings& rope) {
  const char* key = rope.has("rope_type") ? "rope_type" : "type";
  if (!rope.has(key)) return {};
  RotaryScaling scaling{.kind = static_cast<RotaryScaling::Kind>(rope.choice(key, kRotaryScalings))};
  if (scaling.kind == RotaryScaling::Kind::none) return scaling;
  for (const char* needed : {"factor", "original_max_position_embeddings"})
    rope.require(rope.has(needed), needed, "a positive number");
  const bool yarn = scaling.kind == RotaryScaling::Kind::yarn;
  if (yarn) scaling.fast = 32;
  detail::scaling_fields(rope, scaling);
  if (!yarn) return scaling;
  const auto magnitude = [&](const char* name) { return 0.1 * rope.value(name, 1.0) * std::log(scaling.factor) + 1; };
  if (rope.has("mscale") && rope.has("mscale_all_dim"))
    scaling.magnitude = magnitude("mscale") / magnitude("mscale_all_dim");
  rope("attention_factor", scaling.magnitude);
  return scaling;
}

/// The setting `pad_token_id`, which counts from the end if it is negative.
std::optional<std::int64_t> padding_of(const Settings& settings, std::int64_t vocab) {
  const json& id = settings.get("pad_token_id");
  if (id.is_null() || settings.is_none("pad_token_id")) return std::nullopt;
  settings.require(id.is_number_integer() && std::abs(id.get<double>() + 0.5) < static_cast<double>(vocab),
                   "pad_token_id", fmt::format("an integer from {} to {}", -vocab, vocab - 1));
  const auto token = id.get<std::int64_t>();
  return token < 0 ? token + vocab : token;
}

/// A family like Llama, all but the scaling of its rotary positions.
TransformerConfig decoder(const Settings& settings, Activation activation = Activation::swiglu) {
  const bool gelu = activation == Activation::geglu;  // Gemma's
  settings.only("hidden_act", gelu ? "gelu_pytorch_tanh" : settings.get("hidden_act") == "swish" ? "swish" : "silu");
  settings.only("attention_bias", false);
  settings.only("mlp_bias", false);
  TransformerConfig config{.positions = PositionKind::rotary, .activation = activation, .mlp_bias = false};
  config.hidden.emplace();
  detail::decoder_fields(settings, config);
  settings.nullable("num_key_value_heads", config.kv_heads.emplace(config.heads));
  if (settings.has("head_dim")) settings("head_dim", config.head_size.emplace());
  config.padding = padding_of(settings, config.vocab);
  return config;
}

TransformerConfig llama_like(const Settings& settings, Activation activation) {
  TransformerConfig config = decoder(settings, activation);
  settings.only("partial_rotary_factor", 1);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Settings rope = settings.object(key);
    rope.only("partial_rotary_factor", 1);
    for (const auto& [name, value] : settings.get(key).items())  // as one for each type of layer
      rope.require(!value.is_structured(), excerpt(name), "a number or text");
    rope("rope_theta", config.rotary_base);
    if (const RotaryScaling scaling = rotary_scaling(rope); scaling.kind != RotaryScaling::Kind::none)
      config.rotary_scaling = scaling;
  }
  return config;
}

TransformerConfig llama(const Settings& settings) { return llama_like(settings, Activation::swiglu); }

TransformerConfig mistral(const Settings& settings) {
  TransformerConfig config = llama(settings);
  settings.nullable("sliding_window", config.window);
  return config;
}

TransformerConfig mixtral(const Settings& settings) {
  TransformerConfig config = mistral(settings);
  config.experts.emplace();
  settings("num_local_experts", config.experts->experts);
  settings("num_experts_per_tok", config.experts->top);
  return config;
}

/// Of the list `key` for each layer the place of its kind in a list of names. A longer list is one of more layers.
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
  TransformerConfig config = llama(settings);
  if (settings.has("layer_types")) kinds_of(settings, "layer_types", std::array{"full_attention"}, config.layers);
  config.qk_norm = true;
  return config;
}

TransformerConfig qwen3_moe(const Settings& settings) {
  settings.only("use_sliding_window", false);
  settings.only("decoder_sparse_step", 1);
  settings.only("mlp_only_layers", json::array());
  TransformerConfig config = llama(settings);
  config.qk_norm = true;
  config.experts.emplace();
  settings(settings.has("num_experts") ? "num_experts" : "num_local_experts", config.experts->experts);
  settings("num_experts_per_tok", config.experts->top);
  settings("norm_topk_prob", config.experts->normalized);
  settings("moe_intermediate_size", *config.hidden);
  return config;
}

TransformerConfig gemma2(const Settings& settings) {
  settings.only("hidden_activation", "gelu_pytorch_tanh");
  settings.only("use_bidirectional_attention", false);
  TransformerConfig config = llama_like(settings, Activation::geglu);
  config.norm_offset = 1;
  config.post_norms = true;
  settings.nullable("attn_logit_softcapping", config.attention_softcap);
  settings.nullable("final_logit_softcapping", config.logits_softcap);
  config.attention_scale = 1 / std::sqrt(settings.value("query_pre_attn_scalar", 1.0));
  config.embedding_scale = std::sqrt(static_cast<float>(config.channels));
  std::int64_t window = 0;
  settings.nullable("sliding_window", window);
  std::vector<std::size_t> kinds{1, 0};  // by turns
  if (settings.has("layer_types"))
    kinds = kinds_of(settings, "layer_types", std::array{"full_attention", "sliding_attention"}, config.layers);
  for (const std::size_t kind : kinds) config.windows.push_back(kind == 1 ? window : 0);
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

/// The rotary positions of DeepSeek-V4's layers without compression and of those with it.
void read_two_scalings(const Settings& settings, TransformerConfig& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!settings.has(key)) continue;
    const Settings both = settings.object(key);
    const bool nested = both.get("main").is_object() && both.get("compress").is_object();
    const Settings slow(both.where(), nested ? both.get("compress") : settings.get(key));
    config.compressed_rotary_scaling = rotary_scaling(slow);
    const bool yarn = config.compressed_rotary_scaling.kind == RotaryScaling::Kind::yarn;
    if (yarn && !nested && !slow.has("attention_factor")) config.compressed_rotary_scaling.magnitude = 1;
    if (!nested) continue;
    const Settings fast(both.where(), both.get("main"));
    config.rotary_scaling = rotary_scaling(fast);
    fast("rope_theta", config.rotary_base);
    slow("rope_theta", config.compressed_rotary_base);
    fast("partial_rotary_factor", config.rotary_share);
    slow.require(slow.value("partial_rotary_factor", config.rotary_share) == config.rotary_share,
                 "partial_rotary_factor", fmt::format("that of 'main', {},", config.rotary_share));
  }
}

TransformerConfig deepseek_v4(const Settings& settings) {
  settings.only("num_key_value_heads", 1);
  settings.only("n_shared_experts", 1);
  settings.only("norm_topk_prob", true);
  TransformerConfig config = decoder(settings);
  config.qk_norm = config.shared_kv = config.attention_sinks = true;
  config.experts = ExpertsSettings{.shared = 1, .correction = true};
  config.experts->routing = static_cast<Routing>(settings.choice("scoring_func", detail::kRoutings));
  config.streams.emplace();
  const auto rotated = static_cast<double>(settings.value("qk_rope_head_dim", std::int64_t{0}));
  config.rotary_share = rotated > 0 ? rotated / static_cast<double>(*config.head_size) : 0.125;
  settings("sliding_window", config.window);
  detail::deepseek_v4_fields(settings, config);
  settings.require(config.layers <= 1000, "num_hidden_layers", "at most 1000");
  settings.require(config.streams->streams <= 64, "hc_mult", "at most 64");
  settings.require(config.streams->sinkhorn_iterations <= 1000, "hc_sinkhorn_iters", "at most 1000");
  read_two_scalings(settings, config);

  std::array<CompressionSettings, 3> compressions{{{}, {.overlapping = true}, {}}};
  auto& [none, sparse, heavy] = compressions;
  settings("compress_rate_csa", sparse.rate);
  settings("compress_rate_hca", heavy.rate);
  const Settings rates = settings.object("compress_rates");
  rates(detail::kAttentions[1].data(), sparse.rate);
  rates(detail::kAttentions[2].data(), heavy.rate);
  settings("index_n_heads", sparse.index_heads);
  settings("index_head_dim", sparse.index_size);
  settings("index_topk", sparse.index_top);
  for (const std::size_t kind : attentions_of(settings, config.layers))
    config.compressions.push_back(compressions[kind]);
  if (settings.get("num_hash_layers") != 0) settings("num_hash_layers", config.token_routed);
  config.token_routed = std::min(config.layers, config.token_routed);
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
  const auto names = kFamilies | std::views::transform(&detail::FamilyNames::model_type);
  const std::size_t family = Settings(where, object).choice("model_type", names);
  json defaults = json::parse(kDecoderDefaults);
  defaults.update(json::parse(kDefaults[family]));
  const Settings settings(where, object, std::move(defaults));
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
