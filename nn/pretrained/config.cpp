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

namespace braid::nn {
namespace {

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

constexpr std::array<std::pair<std::string_view, Activation>, 5> kGpt2Activations{{
    {"gelu_new", Activation::gelu},
    {"gelu_pytorch_tanh", Activation::gelu},
    {"gelu_fast", Activation::gelu},
    {"gelu", Activation::gelu_erf},
    {"relu", Activation::relu},
}};

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

constexpr std::array<std::string_view, 3> kRotaryScalings{"default", "llama3", "yarn"};  // in the order of the Kinds

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

/// `config`: the family's defaults; kv_heads as heads where it has none.
TransformerConfig as_llama(const Settings& settings, TransformerConfig config) {
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

/// The windows of `layers` layers by the setting `layer_types`; without it, every other one slides, from the first on.
std::vector<std::int64_t> windows_of(const Settings& settings, std::int64_t window, int layers) {
  if (!settings.has("layer_types")) return {window, 0};
  const json& types = settings.get("layer_types");
  settings.require(types.is_array() && std::ssize(types) == layers, "layer_types", "a list with a type for each layer");
  std::vector<std::int64_t> windows;
  for (const json& type : types) {
    const bool slides = type == "sliding_attention";
    settings.require(slides || type == "full_attention", "layer_types", "full_attention or sliding_attention for each");
    windows.push_back(slides ? window : 0);
  }
  return windows;
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
  config.norm_offset = 1;
  config.post_norms = true;
  config.attention_softcap = softcap("attn_logit_softcapping", 50);
  config.logits_softcap = softcap("final_logit_softcapping", 30);
  config = as_llama(settings, config);
  config.attention_scale = 1 / std::sqrt(settings.positive("query_pre_attn_scalar", 256));
  config.embedding_scale = std::sqrt(static_cast<float>(config.channels));
  config.windows = windows_of(settings, window_of(settings, 4096), config.layers);
  return config;
}

struct FamilyReader {
  std::string_view name, architecture;  // its `model_type` and the only one of its `architectures`
  TransformerConfig (*read)(const Settings&);
};
constexpr std::array<FamilyReader, 7> kFamilies{{{"gpt2", "GPT2LMHeadModel", gpt2},  // in the order of PretrainedFamily
                                                 {"llama", "LlamaForCausalLM", llama},
                                                 {"qwen3", "Qwen3ForCausalLM", qwen3},
                                                 {"mistral", "MistralForCausalLM", mistral},
                                                 {"mixtral", "MixtralForCausalLM", mixtral},
                                                 {"qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe},
                                                 {"gemma2", "Gemma2ForCausalLM", gemma2}}};

}  // namespace

PretrainedConfig parse_pretrained_config(const std::string& where, const std::string& text) {
  const json object = parse_object(where, text);
  const Settings settings(where, object);
  const std::size_t family = settings.choice("model_type", kFamilies | std::views::transform(&FamilyReader::name));
  settings.require(!settings.has("quantization_config"), "quantization_config",
                   "absent, since quantized models are not supported,");
  const TransformerConfig config = kFamilies[family].read(settings);
  try {
    return {static_cast<PretrainedFamily>(family), checked(config)};
  } catch (const ValueError& error) {
    throw FileError(fmt::format("{}: {}", where, error.what()));
  }
}

namespace {

json gpt2_settings(const TransformerConfig& c) {
  const auto* activation = std::ranges::find(kGpt2Activations, c.activation, [](const auto& a) { return a.second; });
  return {{"vocab_size", c.vocab},
          {"n_positions", c.context},
          {"n_embd", c.channels},
          {"n_layer", c.layers},
          {"n_head", c.heads},
          {"n_inner", *c.hidden},
          {"activation_function", activation == kGpt2Activations.end() ? "" : activation->first},
          {"layer_norm_epsilon", c.norm_eps},
          {"resid_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0}};
}

json rope_parameters(const TransformerConfig& c) {
  const RotaryScaling& s = c.rotary_scaling;
  json rope{{"rope_type", kRotaryScalings[static_cast<std::size_t>(s.kind)]}, {"rope_theta", c.rotary_base}};
  if (s.kind == RotaryScaling::Kind::none) return rope;
  const bool yarn = s.kind == RotaryScaling::Kind::yarn;
  rope.update({{"factor", s.factor},
               {"original_max_position_embeddings", s.first_context},
               {yarn ? "beta_slow" : "low_freq_factor", s.slow},
               {yarn ? "beta_fast" : "high_freq_factor", s.fast}});
  if (yarn) rope["truncate"] = s.whole_pairs;
  if (yarn && s.magnitude > 0) rope["attention_factor"] = s.magnitude;
  return rope;
}

/// The settings of the families that are like Llama. Each reads those that it has.
json llama_settings(const TransformerConfig& c, PretrainedFamily family) {
  const std::int64_t window = std::ranges::max(c.windows);
  json settings{{"vocab_size", c.vocab},
                {"max_position_embeddings", c.context},
                {"hidden_size", c.channels},
                {"num_hidden_layers", c.layers},
                {"num_attention_heads", c.heads},
                {"num_key_value_heads", *c.kv_heads},
                {"head_dim", *c.head_size},
                {"intermediate_size", *c.hidden},
                {"hidden_act", "silu"},
                {"rms_norm_eps", c.norm_eps},
                {"attention_bias", false},
                {"rope_theta", c.rotary_base},
                {"sliding_window", window > 0 ? json(window) : json()},
                {"rope_parameters", rope_parameters(c)}};
  if (c.experts) {
    settings.update({{"num_local_experts", c.experts->experts}, {"num_experts_per_tok", c.experts->top}});
    if (family == PretrainedFamily::qwen3_moe)
      settings.update({{"moe_intermediate_size", *c.hidden}, {"norm_topk_prob", c.experts->normalized}});
  }
  if (family == PretrainedFamily::gemma2) {
    const auto softcap = [](double cap) { return cap > 0 ? json(cap) : json(); };
    const double scalar = 1 / (c.attention_scale * c.attention_scale), whole = std::round(scalar);
    const bool exact = whole < 1e9 && 1 / std::sqrt(whole) == c.attention_scale;  // as transformers demands it
    settings.update({{"hidden_act", "gelu_pytorch_tanh"},
                     {"hidden_activation", "gelu_pytorch_tanh"},
                     {"query_pre_attn_scalar", exact ? json(static_cast<std::int64_t>(whole)) : json(scalar)},
                     {"attn_logit_softcapping", softcap(c.attention_softcap)},
                     {"final_logit_softcapping", softcap(c.logits_softcap)},
                     {"layer_types", json::array()}});
    if (window == 0) settings["sliding_window"] = 4096;  // which transformers demands, though no layer slides
    for (const std::int64_t each : c.windows)
      settings["layer_types"].push_back(each > 0 ? "sliding_attention" : "full_attention");
  }
  return settings;
}

/// `config` is spelled out.
json settings_of(const TransformerConfig& config, PretrainedFamily family) {
  json object = family == PretrainedFamily::gpt2 ? gpt2_settings(config) : llama_settings(config, family);
  object["tie_word_embeddings"] = config.tied_head;
  return object;
}

/// The config with what it leaves to defaults, and without what makes no difference to a file.
TransformerConfig spelled_out(TransformerConfig c) {
  c.hidden = c.hidden.value_or(c.mlp_ratio * c.channels);
  c.mlp_ratio = 1;
  c.kv_heads = c.kv_heads.value_or(c.heads);
  c.head_size = c.head_size.value_or(c.channels / c.heads);
  if (c.attention_scale == 0) c.attention_scale = 1 / std::sqrt(static_cast<double>(*c.head_size));
  c.embedding_scale = static_cast<float>(c.embedding_scale);
  if (c.windows.empty()) c.windows = {c.window};
  c.window = 0;
  for (std::size_t i = 0; std::ssize(c.windows) < c.layers; ++i) c.windows.push_back(c.windows[i]);
  if (c.experts) c.experts->mlp = {};
  if (c.positions == PositionKind::learned) c.rotary_base = 0, c.rotary_scaling = {};
  c.dtype = DType::f32;
  return c;
}

}  // namespace

PretrainedFamily family_of(const TransformerConfig& config) {
  const TransformerConfig c = spelled_out(config);
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    const auto family = static_cast<PretrainedFamily>(i);
    const json object = json::parse(settings_of(c, family).dump());  // with the types that a file has
    try {
      if (spelled_out(kFamilies[i].read(Settings("", object))) == c) return family;
    } catch (const Error&) {  // the family does not have a setting
    }
  }
  const auto with = [](bool has) { return has ? "with" : "without"; };
  const bool layer = c.norm == NormKind::layer, learned = c.positions == PositionKind::learned;
  const bool gated = c.activation == Activation::swiglu || c.activation == Activation::geglu;
  const bool as_one = c.attention_bias == layer && c.mlp_bias == layer && learned == layer && gated != layer;
  check_value(!as_one,
              "save_pretrained: no family has the model's heads, windows, norms, scales, caps and experts together");
  throw ValueError(fmt::format(
      "save_pretrained: the model must be as GPT-2 (layer norm, learned positions, biases, no gate, equal heads) or as "
      "Llama, Qwen3 and Mistral (RMS norm, rotary positions, no biases, a gate) but has {} norm, {} positions, "
      "attention {} biases, an MLP {} biases and {} gate",
      layer ? "layer" : "RMS", learned ? "learned" : "rotary", with(c.attention_bias), with(c.mlp_bias), with(gated)));
}

std::string format_pretrained_config(const TransformerConfig& config, DType dtype) {
  const PretrainedFamily family = family_of(config);
  const auto& [name, architecture, read] = kFamilies[static_cast<std::size_t>(family)];
  json object = settings_of(spelled_out(config), family);
  object["model_type"] = name;
  object["architectures"] = json::array({architecture});
  object["torch_dtype"] = dtype == DType::f64 ? "float64" : "float32";
  for (const char* token : {"bos_token_id", "eos_token_id"}) object[token] = nullptr;
  return object.dump(2) + "\n";
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

std::string detail::format_shard_index(const std::map<std::string, std::string>& files, std::uint64_t bytes) {
  return json{{"metadata", {{"total_size", bytes}}}, {"weight_map", files}}.dump(2) + "\n";
}

}  // namespace braid::nn
