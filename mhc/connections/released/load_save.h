#pragma once
#include <filesystem>
#include <string>

#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/nn/saving.h>

namespace braid::mhc {

/// The spelling of names: `layers.3.hc_attn_fn` in the checkpoints, `model.layers.3.attn_hc.fn` in transformers.
enum class CheckpointNames { native, hugging_face };
/// The sublayer of a block that a connection wraps.
enum class Sublayer { attention, mlp };

/// The prefix of the names of a connection's parameters: `layers.3.hc_attn_` or `model.layers.3.attn_hc.`.
std::string connection_prefix(CheckpointNames names, std::int64_t layer, Sublayer sublayer);
/// The prefix of the WeightedHead's parameters: `hc_head_` or `model.hc_head.hc_`.
std::string head_prefix(CheckpointNames names);

/// Sets the parameters of a connection or head from the tensors whose names are `prefix` and the parameter's, converted
/// to its dtype. Throws Error listing every name under the prefix that is missing, unexpected or of another shape; then
/// nothing has changed.
void load_connection(const nn::NamedTensors& tensors, const std::string& prefix, auto& module) {
  nn::NamedTensors own;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(prefix)) own.emplace(name, tensor);
  nn::from_tensors(module, own, "load_connection", [&](const std::string& name) { return prefix + name; });
}

/// Adds the parameters to tensors, under the names that load_connection() reads.
void save_connection(nn::NamedTensors& tensors, const std::string& prefix, const auto& module) {
  for (const auto& [name, tensor] : nn::to_tensors(module)) tensors.insert_or_assign(prefix + name, tensor);
}

/// For mHC, phi and bias become fn and base: transposed, and the comb block transposed once more. The maps are those of
/// deepseek_v4() with hc_eps = 0. Throws ValueError unless the mixing is sinkhorn.
void load_connection(const nn::NamedTensors& tensors, const std::string& prefix, ManifoldConstrainedHC& module);
/// Throws ValueError unless the mixing is sinkhorn.
void save_connection(nn::NamedTensors& tensors, const std::string& prefix, const ManifoldConstrainedHC& module);

/// Loads a connection or head from a safetensors file. Throws as load_safetensors() does, too.
void load_connection(const std::filesystem::path& file, const std::string& prefix, Parametric auto& module) {
  load_connection(load_safetensors(file).tensors, prefix, module);
}
/// Saves one connection as a file. To save several in one file, collect their tensors.
void save_connection(const std::filesystem::path& file, const std::string& prefix, const Parametric auto& module) {
  nn::NamedTensors tensors;
  save_connection(tensors, prefix, module);
  save_safetensors(file, tensors);
}

}  // namespace braid::mhc
