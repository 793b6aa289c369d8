#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/nn/pretrained/detail/folder.h>
#include <braid/nn/saving.h>
#include <braid/nn/transformer.h>

namespace braid::nn {

namespace detail {

/// What is saved, except of connections where the family has none.
template <class Connection>
NamedParams own_params(Transformer<Connection>& model) {
  NamedParams params = saved_tensors(model);
  if (!model.config.streams) std::erase_if(params, in_connection);
  return params;
}

}  // namespace detail

/// Settings of load_pretrained().
struct LoadPretrained {
  /// That of parameters and activations, whatever the files have; with bf16, parameters are f32.
  DType dtype = DType::f32;
};

/// Reads a model of a PretrainedFamily in Hugging Face's format: config.json and model.safetensors, or the shards that
/// model.safetensors.index.json names, in F32, F16, BF16 or F64. `make_connection(config, i)` makes the connection of
/// sublayer i with its own initial parameters:
///
///     auto model = nn::load_pretrained("Qwen3-0.6B", [&](const nn::TransformerConfig& c, int i) {
///       return mhc::Connection({.kind = mhc::ConnectionKind::mhc, .phi_std = 0.02, .alpha = 0}, c.channels, i, rng);
///     });
///
/// A DeepSeek-V4 has connections of its own, which mhc::pretrained_connection() makes.
///
/// Does not trust the files. Throws UnreadableFile when one cannot be opened, FileError when one is damaged, when a
/// setting is not supported, by its name, when it asks for more than the files can fill, when tensors are missing,
/// unexpected or of another shape, listing 30 of them, and when a table, in I32 or I64, names an expert that does not
/// exist. Throws ValueError when a model with hyper-connections gets none, Error for others, DTypeError for i32.
template <class MakeConnection>
  requires std::invocable<MakeConnection&, const TransformerConfig&, int>
auto load_pretrained(const std::filesystem::path& folder, MakeConnection make_connection,
                     const LoadPretrained& options = {}) {
  using Connection = std::invoke_result_t<MakeConnection&, const TransformerConfig&, int>;
  detail::PretrainedFolder files(folder, options.dtype);
  const TransformerConfig& config = files.config;
  std::vector<Connection> connections;
  for (int i = 0; i < 2 * config.layers; ++i) connections.push_back(make_connection(config, i));
  const init::Placeholders until_read;
  Rng unused;
  Transformer<Connection> model(config, unused,
                                [&](int i) { return std::move(connections[static_cast<std::size_t>(i)]); });
  files.read(detail::own_params(model));
  return model;
}

/// The same with plain residual connections.
inline Transformer<> load_pretrained(const std::filesystem::path& folder, const LoadPretrained& options = {}) {
  return load_pretrained(
      folder, [](const TransformerConfig&, int) { return Residual{}; }, options);
}

/// The tensors of a model, or of its gradients, with the names and layouts of its family. Throws ValueError as
/// family_of() does, Error for parameters that the family does not have.
template <class Connection>
NamedTensors pretrained_tensors(const Transformer<Connection>& model) {
  Transformer<Connection> copy = model;
  return detail::pretrained_tensors(model.config, detail::own_params(copy));
}

/// Settings of save_pretrained().
struct SavePretrained {
  std::uint64_t max_shard_bytes = 5'000'000'000;  ///< a tensor that is larger gets a shard of its own
};

/// Writes config.json and the tensors that Hugging Face's transformers load, each file atomically. Copy tokenizer*.json
/// and, with the ids that begin and end a text, generation_config.json from the original. Throws ValueError unless the
/// model is, by its settings, of a family, and its connections are the family's; FileError when writing fails.
template <class Connection>
void save_pretrained(const Transformer<Connection>& model, const std::filesystem::path& folder,
                     const SavePretrained& options = {}) {
  Transformer<Connection> copy = model;
  const detail::NamedParams params = detail::own_params(copy);
  const std::int64_t wanted = model.config.streams ? 6 * model.config.layers + 3 : 0;  // DeepSeek-V4's, with its head
  check_value(std::ranges::count_if(detail::saved_tensors(copy), detail::in_connection) == wanted,
              "save_pretrained: the connections must {}; nn::save_module saves a model with any",
              wanted > 0 ? "be those that mhc::pretrained_connection makes" : "have no parameters, as in the family");
  detail::save_pretrained(model.config, params, folder, options.max_shard_bytes);
}

}  // namespace braid::nn
