#pragma once
#include <array>
#include <string_view>
#include <utility>

#include <braid/nn/experts.h>
#include <braid/nn/rotary.h>

namespace braid::nn::detail {

// What config.json calls things, for reading and writing.

inline constexpr std::array<std::pair<std::string_view, Activation>, 5> kGpt2Activations{{
    {"gelu_new", Activation::gelu},
    {"gelu_pytorch_tanh", Activation::gelu},
    {"gelu_fast", Activation::gelu},
    {"gelu", Activation::gelu_erf},
    {"relu", Activation::relu},
}};

/// In the order of Routing.
inline constexpr std::array<std::string_view, 3> kRoutings{"softmax", "sigmoid", "sqrtsoftplus"};

/// Of DeepSeek-V4: the kinds of attention, the last two with compression, and of experts, the first chosen by token.
inline constexpr std::array<std::string_view, 3> kAttentions{"sliding_attention", "compressed_sparse_attention",
                                                             "heavily_compressed_attention"};
inline constexpr std::array<std::string_view, 2> kExpertChoices{"hash_moe", "moe"};

/// In the order of RotaryScaling::Kind.
inline constexpr std::array<std::string_view, 3> kRotaryScalings{"default", "llama3", "yarn"};

struct FamilyNames {
  std::string_view model_type, architecture;  // the latter the only one of its `architectures`
};
/// In the order of PretrainedFamily.
inline constexpr std::array<FamilyNames, 8> kFamilies{{{"gpt2", "GPT2LMHeadModel"},
                                                       {"llama", "LlamaForCausalLM"},
                                                       {"qwen3", "Qwen3ForCausalLM"},
                                                       {"mistral", "MistralForCausalLM"},
                                                       {"mixtral", "MixtralForCausalLM"},
                                                       {"qwen3_moe", "Qwen3MoeForCausalLM"},
                                                       {"gemma2", "Gemma2ForCausalLM"},
                                                       {"deepseek_v4", "DeepseekV4ForCausalLM"}}};

// Settings that are one field of a config each: `io(name, field)` reads or writes it.

void gpt2_fields(const auto& io, auto& config) {
  io("vocab_size", config.vocab);
  io("n_positions", config.context);
  io("n_embd", config.channels);
  io("n_layer", config.layers);
  io("n_head", config.heads);
  io("layer_norm_epsilon", config.norm_eps);
  io("tie_word_embeddings", config.tied_head);
}

/// Of the families that are like Llama.
void decoder_fields(const auto& io, auto& config) {
  io("vocab_size", config.vocab);
  io("max_position_embeddings", config.context);
  io("hidden_size", config.channels);
  io("num_hidden_layers", config.layers);
  io("num_attention_heads", config.heads);
  io("intermediate_size", *config.hidden);
  io("rms_norm_eps", config.norm_eps);
  io("rope_theta", config.rotary_base);
  io("tie_word_embeddings", config.tied_head);
}

/// The config has experts and streams.
void deepseek_v4_fields(const auto& io, auto& config) {
  io("moe_intermediate_size", *config.hidden);
  io("partial_rotary_factor", config.rotary_share);
  io("compress_rope_theta", config.compressed_rotary_base);
  io("q_lora_rank", config.query_rank);
  io("o_groups", config.output_groups);
  io("o_lora_rank", config.output_rank);
  io("swiglu_limit", config.mlp_limit);
  io("n_routed_experts", config.experts->experts);
  io("num_experts_per_tok", config.experts->top);
  io("routed_scaling_factor", config.experts->scale);
  io("hc_mult", config.streams->streams);
  io("hc_sinkhorn_iters", config.streams->sinkhorn_iterations);
  io("hc_eps", config.streams->eps);
}

void scaling_fields(const auto& io, auto& scaling) {
  const bool yarn = scaling.kind == RotaryScaling::Kind::yarn;
  io("factor", scaling.factor);
  io("original_max_position_embeddings", scaling.first_context);
  io(yarn ? "beta_slow" : "low_freq_factor", scaling.slow);
  io(yarn ? "beta_fast" : "high_freq_factor", scaling.fast);
  if (yarn) io("truncate", scaling.whole_pairs);
}

}  // namespace braid::nn::detail
