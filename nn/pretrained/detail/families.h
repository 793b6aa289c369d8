#pragma once
#include <array>
#include <string_view>
#include <utility>

#include <braid/nn/experts.h>

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

}  // namespace braid::nn::detail
