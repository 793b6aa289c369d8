#pragma once
#include <cstdint>
#include <map>
#include <string>

#include <braid/nn/transformer.h>

namespace braid::nn {

/// The architectures whose Hugging Face folders braid reads and writes.
enum class PretrainedFamily { gpt2, llama, qwen3, mistral, mixtral, qwen3_moe, gemma2, deepseek_v4 };

/// What a config.json describes.
struct PretrainedConfig {
  PretrainedFamily family;   ///< by `model_type`
  TransformerConfig config;  ///< the architecture and its sizes
};

/// Parses the text of a config.json. Throws FileError that starts with `where` and names the setting that is wrong or
/// not supported.
PretrainedConfig parse_pretrained_config(const std::string& where, const std::string& text);

/// The family of a model with these settings. Throws ValueError naming the settings that no family has.
PretrainedFamily family_of(const TransformerConfig& config);
/// The text of a config.json for a model whose parameters have `dtype`. Throws ValueError as family_of() does.
std::string format_pretrained_config(const TransformerConfig& config, DType dtype);

namespace detail {

/// Parses a model.safetensors.index.json: the file of each tensor. Throws FileError that starts with `where`, also for
/// a file outside the folder.
std::map<std::string, std::string> parse_shard_index(const std::string& where, const std::string& text);
std::string format_shard_index(const std::map<std::string, std::string>& files, std::uint64_t bytes);

}  // namespace detail
}  // namespace braid::nn
