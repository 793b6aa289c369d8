#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <braid/nn/pretrained/detail/names.h>
#include <braid/nn/saving.h>

namespace braid::detail {
class SafetensorsReader;
}

namespace braid::nn::detail {

/// A model's folder in Hugging Face's format. The constructor reads the settings and opens the files of the tensors.
/// Throws FileError naming the file.
class PretrainedFolder {
 public:
  PretrainedFolder(const std::filesystem::path& folder, DType dtype);
  ~PretrainedFolder();
  PretrainedFolder(const PretrainedFolder&) = delete;
  PretrainedFolder& operator=(const PretrainedFolder&) = delete;

  const TransformerConfig& config() const { return config_; }
  /// Sets the parameters of a model with that config, reading one tensor at a time. Before any is set, throws FileError
  /// listing tensors that are missing, unexpected or of another shape.
  void read(const NamedParams& params);

 private:
  using Wanted = std::map<std::string, const PretrainedTensor*>;

  void open_shards(const std::filesystem::path& folder);
  void check_sizes() const;
  void check_names(const Wanted& wanted) const;
  void check_experts(const std::string& name, const Tensor& table) const;
  /// The tensor with this name, with or without its prefix; null if there is none.
  const PretrainedTensor* find(const std::string& name, const Wanted& wanted) const;

  std::string where_;
  Family family_{};
  TransformerConfig config_;
  std::vector<std::unique_ptr<braid::detail::SafetensorsReader>> readers_;
  std::map<std::string, std::string> index_;  // the file of each tensor, if there is an index
};

/// The tensors of a model by their names in its family. Throws ValueError when it belongs to none.
NamedTensors pretrained_tensors(const TransformerConfig& config, const NamedParams& params);

/// Writes the folder. Throws ValueError when the model belongs to no family, FileError when writing fails.
void save_pretrained(const TransformerConfig& config, const NamedParams& params, const std::filesystem::path& folder,
                     std::uint64_t max_shard_bytes);

}  // namespace braid::nn::detail
