#pragma once
#include <array>
#include <string_view>
#include <utility>

#include <braid/nn/mlp.h>

namespace braid::nn::detail {

// What config.json calls things, for reading and writing.

inline constexpr std::array<std::pair<std::string_view, Activation>, 5> kGpt2Activations{{
    {"gelu_new", Activation::gelu},
    {"gelu_pytorch_tanh", Activation::gelu},
    {"gelu_fast", Activation::gelu},
    {"gelu", Activation::gelu_erf},
    {"relu", Activation::relu},
}};

/// In the order of RotaryScaling::Kind.
inline constexpr std::array<std::string_view, 3> kRotaryScalings{"default", "llama3", "yarn"};

struct FamilyNames {
  std::string_view model_type, architecture;  // the latter the only one of its `architectures`
};
/// In the order of PretrainedFamily.
inline constexpr std::array<FamilyNames, 7> kFamilies{{{"gpt2", "GPT2LMHeadModel"},
                                                       {"llama", "LlamaForCausalLM"},
                                                       {"qwen3", "Qwen3ForCausalLM"},
                                                       {"mistral", "MistralForCausalLM"},
                                                       {"mixtral", "MixtralForCausalLM"},
                                                       {"qwen3_moe", "Qwen3MoeForCausalLM"},
                                                       {"gemma2", "Gemma2ForCausalLM"}}};

}  // namespace braid::nn::detail
