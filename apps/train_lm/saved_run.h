#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "../common/trainer.h"

namespace braid::train_lm {

/// A checkpoint whose checksum is right: tensors `model.*` and `optimizer.*`, and metadata with the rest of the state.
struct Checkpoint {
  std::filesystem::path path;
  SafetensorsFile file;
  std::string damage;  ///< describes newer checkpoints that are damaged, if any

  /// An entry of the metadata. Throws FileError naming the file when it is missing.
  const std::string& entry(const std::string& key) const;
  /// An entry as a number. Throws FileError also when it is not a finite number of this type.
  template <class T>
  T number(const std::string& key) const;
  /// The configuration of the run.
  nlohmann::json config() const;
  /// The tensors whose names begin with `prefix`, without it.
  nn::NamedTensors tensors(std::string_view prefix) const;
};

/// The files of a run's checkpoints, the newest first. At any moment at least one of them is complete.
std::filesystem::path next_checkpoint(const std::filesystem::path& folder);
std::filesystem::path last_checkpoint(const std::filesystem::path& folder);
std::filesystem::path previous_checkpoint(const std::filesystem::path& folder);
/// The checkpoint of the lowest held-out loss.
std::filesystem::path best_checkpoint(const std::filesystem::path& folder);

/// The newest checkpoint in the folder whose checksum is right; nullopt when there are none. Throws FileError when all
/// are damaged or the newest cannot be read.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder);

/// The newest undamaged checkpoint in the folder of a step before `step`, best.safetensors included.
std::optional<Checkpoint> checkpoint_before(const std::filesystem::path& folder, std::int64_t step);

/// Renames a file of the run. Throws FileError naming both.
void move_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// Whether the folder has a checkpoint, damaged or not.
bool has_checkpoint(const std::filesystem::path& folder);

/// A model from which another run can start: that of a run, or a pretrained one.
struct SavedRun {
  apps::TrainerSettings training;  ///< connection, layers, channels, heads, context and architecture
  std::string alphabet;            ///< empty when it reads tokens
  std::string tokenizer_checksum;  ///< empty when it has no tokenizer
  nn::NamedTensors parameters;
  std::string text = {};  ///< the file that it learned; empty: the license texts of the system, or not known
  std::int64_t step = 0;
  bool pretrained = false;  ///< whether it is a pretrained model, whose vocabulary is not known
};

/// The folder of a run that is named by its folder or by one of its checkpoints.
std::filesystem::path folder_of(const std::filesystem::path& run);

/// The model of the newest checkpoint in a run's folder, or of the checkpoint that `path` is. Throws FileError when
/// there is none or it is damaged.
SavedRun load_run(const std::filesystem::path& path);

/// The model of load_run(), or that in a folder as Hugging Face saves it. Throws FileError when it is neither.
SavedRun load_origin(const std::filesystem::path& folder);

}  // namespace braid::train_lm
