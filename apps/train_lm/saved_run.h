#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "../common/trainer.h"

namespace braid::train_lm {

/// A checkpoint of a run that verified: tensors `model.*` and `optimizer.*`, and what else the run goes on from.
struct Checkpoint {
  std::filesystem::path path;
  SafetensorsFile file;
  std::string damage;  ///< of the newer ones, if any

  /// Of the metadata. Throws FileError naming the file when it is not there.
  const std::string& entry(const std::string& key) const;
  /// Throws FileError also when it is no number of this type, or not finite.
  template <class T>
  T number(const std::string& key) const;
  /// The configuration of the run.
  nlohmann::json config() const;
  /// The tensors whose names begin with `prefix`, without it.
  nn::NamedTensors tensors(std::string_view prefix) const;
};

/// The files of a run's checkpoints. What was written first is the newest: there is always one that is whole.
std::filesystem::path next_checkpoint(const std::filesystem::path& folder);
std::filesystem::path last_checkpoint(const std::filesystem::path& folder);
std::filesystem::path previous_checkpoint(const std::filesystem::path& folder);
/// That of the lowest held-out loss.
std::filesystem::path best_checkpoint(const std::filesystem::path& folder);

/// The newest checkpoint in the folder whose checksum is right; none when there is none at all. Throws FileError when
/// all are damaged or the newest cannot be read.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder);

/// Whether there is one, damaged or not.
bool has_checkpoint(const std::filesystem::path& folder);

/// What another run can start from: the model of a run, or a pretrained one.
struct SavedRun {
  examples::TrainerSettings training;  ///< connection, layers, channels, heads, context and architecture
  std::string alphabet;                ///< empty when it reads tokens
  std::string tokenizer_checksum;      ///< empty when it has no tokenizer
  nn::NamedTensors parameters;
  std::int64_t step = 0;
  bool pretrained = false;  ///< the vocabulary is not known then
};

/// The model of the newest checkpoint in a run's folder. Throws FileError.
SavedRun load_run(const std::filesystem::path& folder);

/// The model in a run's folder, or in one as Hugging Face saves it. Throws FileError.
SavedRun load_origin(const std::filesystem::path& folder);

}  // namespace braid::train_lm
