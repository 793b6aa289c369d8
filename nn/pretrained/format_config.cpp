#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <braid/nn/pretrained/config.h>
#include <braid/nn/pretrained/detail/families.h>

namespace braid::nn {
namespace {

using detail::kFamilies, detail::kGpt2Activations, detail::kRotaryScalings;
using nlohmann::json;

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

/// What a config.json of the family says of `config`, which is spelled out. Reading it may give another config.
std::string format_config(const TransformerConfig& config, PretrainedFamily family, DType dtype) {
  json object = family == PretrainedFamily::gpt2 ? gpt2_settings(config) : llama_settings(config, family);
  const auto& [type, architecture] = kFamilies[static_cast<std::size_t>(family)];
  object["model_type"] = type;
  object["architectures"] = json::array({architecture});
  object["tie_word_embeddings"] = config.tied_head;
  object["torch_dtype"] = dtype == DType::f64 ? "float64" : "float32";
  for (const char* token : {"bos_token_id", "eos_token_id"}) object[token] = nullptr;
  return object.dump(2) + "\n";
}

}  // namespace

PretrainedFamily family_of(const TransformerConfig& config) {
  const TransformerConfig c = spelled_out(config);
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    const auto family = static_cast<PretrainedFamily>(i);
    try {
      if (spelled_out(parse_pretrained_config("", format_config(c, family, DType::f32)).config) == c) return family;
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
  return format_config(spelled_out(config), family_of(config), dtype);
}

std::string detail::format_shard_index(const std::map<std::string, std::string>& files, std::uint64_t bytes) {
  return json{{"metadata", {{"total_size", bytes}}}, {"weight_map", files}}.dump(2) + "\n";
}

}  // namespace braid::nn
