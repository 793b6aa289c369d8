#pragma once
#include <filesystem>
#include <optional>

#include "../common/trainer.h"
#include "config.h"

namespace braid::train_lm {

/// Writes model, optimizer, step and random generator, from which a run continues bit for bit, with a checksum, to
/// checkpoint.safetensors in the run's folder; the file before it becomes checkpoint.previous.safetensors. Syncs the
/// lines of the run first. Throws NonFiniteError, and leaves the files unchanged, when a tensor is not finite.
void save_checkpoint(const std::filesystem::path& folder, const apps::TrainerState& state, const Config& config,
                     const apps::Corpus& corpus);

/// Writes the same to best.safetensors if `held_out` is the lowest held-out loss of the run so far, and records it in
/// the state.
void save_if_best(const std::filesystem::path& folder, apps::TrainerState& state, double held_out, const Config& config,
                  const apps::Corpus& corpus);

/// The newest state in the folder whose checksum is right, with the structure of `like`; nullopt when there is no
/// checkpoint. Prints a line when it is not the last one saved, and completes the renames of a save that was killed.
/// Throws FileError when all are damaged or the newest cannot be read, ValueError when the run had another text,
/// configuration or instruction set, or weights that are not finite.
std::optional<apps::TrainerState> load_checkpoint(const std::filesystem::path& folder, const apps::TrainerState& like,
                                                  const Config& config, const apps::Corpus& corpus);

/// The state of checkpoint_before(), which changes no file; nullopt when there is none. Throws ValueError when the run
/// had another text or configuration.
std::optional<apps::TrainerState> load_checkpoint_before(const std::filesystem::path& folder, std::int64_t step,
                                                         const apps::TrainerState& like, const Config& config,
                                                         const apps::Corpus& corpus);

/// Collective: gives every rank the model, optimizer, step and random generator of rank 0.
void share_state(apps::TrainerState& state, const Config& config, dist::Communicator& ranks);

/// Throws ValueError unless the run that config.json or a checkpoint describes is the one of `config` and `corpus`.
void check_same_run(const nlohmann::json& earlier, const std::string& text_checksum,
                    const std::string& tokenizer_checksum, const Config& config, const apps::Corpus& corpus);

}  // namespace braid::train_lm
