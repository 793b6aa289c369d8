#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <braid/nn/pretrained/config.h>
#include <braid/nn/saving.h>

namespace braid::detail {
class SafetensorsReader;
}

namespace braid::nn::detail {

using Family = PretrainedFamily;
using NamedParams = std::vector<std::pair<std::string, Tensor*>>;

/// A tensor of a family's files and the parameters that it contains: several are concatenated along their first axis.
struct PretrainedTensor {
  std::string name;
  std::vector<Tensor*> params;
  bool transposed;  // GPT-2's Conv1D stores [in, out]

  Shape shape() const;
  DType dtype() const { return params.front()->dtype(); }
  /// Sets the parameters, in `dtype` but for integers.
  void assign(Tensor value, DType dtype) const;
  /// What the file contains: a view of the parameter unless several are concatenated.
  Tensor value() const;
};

/// Whether a parameter is of a connection, by its name.
inline bool in_connection(const NamedParams::value_type& param) {
  return param.first.find(".connection.") != param.first.npos;
}

/// All tensors of a model with these parameters. Throws Error unless the family has a name for each.
std::vector<PretrainedTensor> pretrained_tensors(Family family, const TransformerConfig& config,
                                                 const NamedParams& params);

/// A model's folder in Hugging Face's format. The constructor reads the settings and opens the files of the tensors.
/// Throws FileError naming the file.
struct PretrainedFolder : PretrainedConfig {
  std::string where;
  std::vector<std::shared_ptr<braid::detail::SafetensorsReader>> readers;
  std::map<std::string, std::string> index;  // the file of each tensor, if there is an index

  PretrainedFolder(const std::filesystem::path& folder, DType dtype);
  /// Sets the parameters of a model with that config, reading one tensor at a time. Before any is set, throws FileError
  /// listing tensors that are missing, unexpected or of another shape.
  void read(const NamedParams& params);
};

/// The tensors of a model by their names in its family. Throws ValueError when it belongs to none.
NamedTensors pretrained_tensors(const TransformerConfig& config, const NamedParams& params);

/// Writes the folder. Throws ValueError when the model belongs to no family, FileError when writing fails.
void save_pretrained(const TransformerConfig& config, const NamedParams& params, const std::filesystem::path& folder,
                     std::uint64_t max_shard_bytes);

}  // namespace braid::nn::detail
