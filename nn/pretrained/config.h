#pragma once
#include <cstdint>
#include <map>
#include <string>

#include <braid/nn/pretrained/names.h>
#include <braid/nn/transformer.h>

namespace braid::nn::detail {

struct PretrainedConfig {
  Family family;
  TransformerConfig config;
};

/// Reads the text of a config.json. Throws FileError that starts with `where` and names the setting, also for one that
/// braid does not do.
PretrainedConfig parse_pretrained_config(const std::string& where, const std::string& text);

/// The family that a model is of. Throws ValueError naming what no family has.
Family family_of(const TransformerConfig& config);
/// The text of the config.json of a model whose parameters have `dtype`.
std::string format_pretrained_config(const TransformerConfig& config, DType dtype);

/// The text of a model.safetensors.index.json: the file of each tensor. Throws FileError that starts with `where`; the
/// files' names are those of files beside it.
std::map<std::string, std::string> parse_shard_index(const std::string& where, const std::string& text);
std::string format_shard_index(const std::map<std::string, std::string>& files, std::uint64_t bytes);

}  // namespace braid::nn::detail
