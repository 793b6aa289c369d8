#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <braid/nn/pretrained/config.h>
#include <braid/nn/pretrained/detail/families.h>

namespace braid::nn {
namespace {

using detail::kAttentions, detail::kExpertChoices, detail::kFamilies, detail::kGpt2Activations;
using detail::kRotaryScalings, detail::kRoutings;
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
  if (c.positions == PositionKind::learned) c.rotary_base = 0, c.rotary_scaling = {}, c.rotary_share = 1;
  const auto is_none = [](const CompressionSettings& each) { return each.rate == 0; };
  for (std::size_t i = 0; !c.compressions.empty() && std::ssize(c.compressions) < c.layers; ++i)
    c.compressions.push_back(c.compressions[i]);
  if (std::ranges::all_of(c.compressions, is_none)) {
    c.compressions.clear();
    c.compressed_rotary_base = c.rotary_base;
    c.compressed_rotary_scaling = {};
  }
  c.dtype = DType::f32;
  return c;
}

/// Writes fields, see families.h.
auto writer(json& object) {
  return [&object](const char* key, const auto& value) { object[key] = value; };
}

json gpt2_settings(const TransformerConfig& c) {
  const auto* activation = std::ranges::find(kGpt2Activations, c.activation, [](const auto& a) { return a.second; });
  json settings{{"n_inner", *c.hidden},
                {"activation_function", activation == kGpt2Activations.end() ? "" : activation->first},
                {"resid_pdrop", 0.0},
                {"embd_pdrop", 0.0},
                {"attn_pdrop", 0.0}};
  detail::gpt2_fields(writer(settings), c);
  return settings;
}

json rope_parameters(double base, const RotaryScaling& s) {
  json rope{{"rope_type", kRotaryScalings[static_cast<std::size_t>(s.kind)]}, {"rope_theta", base}};
  if (s.kind == RotaryScaling::Kind::none) return rope;
  detail::scaling_fields(writer(rope), s);
  if (s.kind == RotaryScaling::Kind::yarn && s.magnitude > 0) rope["attention_factor"] = s.magnitude;
  return rope;
}

/// The settings of the families that are like Llama. Each reads those that it has.
json llama_settings(const TransformerConfig& c, PretrainedFamily family) {
  const std::int64_t window = std::ranges::max(c.windows);
  json settings{{"num_key_value_heads", *c.kv_heads},
                {"head_dim", *c.head_size},
                {"hidden_act", "silu"},
                {"attention_bias", false},
                {"sliding_window", window > 0 ? json(window) : json()},
                {"rope_parameters", rope_parameters(c.rotary_base, c.rotary_scaling)}};
  detail::decoder_fields(writer(settings), c);
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

json deepseek_v4_settings(TransformerConfig c) {
  json settings = llama_settings(c, PretrainedFamily::deepseek_v4);
  c.experts = c.experts.value_or(ExpertsSettings());
  c.streams = c.streams.value_or(StreamsSettings());
  detail::deepseek_v4_fields(writer(settings), c);
  json main = rope_parameters(c.rotary_base, c.rotary_scaling);
  json compress = rope_parameters(c.compressed_rotary_base, c.compressed_rotary_scaling);
  main["partial_rotary_factor"] = compress["partial_rotary_factor"] = c.rotary_share;
  settings.update({{"rope_parameters", {{"main", main}, {"compress", compress}}},
                   {"n_shared_experts", c.experts->shared},
                   {"scoring_func", kRoutings[static_cast<std::size_t>(c.experts->routing)]},
                   {"norm_topk_prob", c.experts->normalized},
                   {"num_nextn_predict_layers", 0}});
  settings.erase("intermediate_size");
  settings.erase("num_local_experts");
  for (int layer = 0; layer < c.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const CompressionSettings each = c.compressions.empty() ? CompressionSettings() : c.compressions[at];
    const std::size_t kind = each.rate == 0 ? 0 : each.index_top > 0 ? 1 : 2;
    settings["layer_types"].push_back(kAttentions[kind]);
    settings["mlp_layer_types"].push_back(kExpertChoices[layer < c.token_routed ? 0 : 1]);
    if (kind > 0) settings["compress_rates"][std::string(kAttentions[kind])] = each.rate;
    if (kind == 1)
      settings.update(
          {{"index_n_heads", each.index_heads}, {"index_head_dim", each.index_size}, {"index_topk", each.index_top}});
  }
  return settings;
}

/// What a config.json of the family says of `config`, which is spelled out. Reading it may give another config.
std::string format_config(const TransformerConfig& config, PretrainedFamily family, DType dtype) {
  json object = family == PretrainedFamily::gpt2          ? gpt2_settings(config)
                : family == PretrainedFamily::deepseek_v4 ? deepseek_v4_settings(config)
                                                          : llama_settings(config, family);
  const auto& [type, architecture] = kFamilies[static_cast<std::size_t>(family)];
  object["model_type"] = type;
  object["architectures"] = json::array({architecture});
  object["torch_dtype"] = dtype == DType::f64 ? "float64" : dtype == DType::bf16 ? "bfloat16" : "float32";
  for (const char* token : {"bos_token_id", "eos_token_id"}) object[token] = nullptr;
  object["pad_token_id"] = config.padding ? json(*config.padding) : json();
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
