#pragma once
#include <filesystem>
#include <optional>

#include "../common/trainer.h"
#include "config.h"

namespace braid::train_lm {

/// Model, optimizer, step and generator, so that a run continues from them bit for bit, with a checksum of all of it,
/// into checkpoint.safetensors of a run's folder; what was there becomes checkpoint.previous.safetensors. The lines of
/// the run are synced before. Throws NonFiniteError, and leaves the files as they are, when a tensor is not finite.
void save_checkpoint(const std::filesystem::path& folder, const examples::TrainerState& state, const Config& config,
                     const examples::Corpus& corpus);

/// The same into best.safetensors, if no evaluation of the run had such a low held-out loss; which then is the best
/// one.
void save_if_best(const std::filesystem::path& folder, examples::TrainerState& state, double held_out,
                  const Config& config, const examples::Corpus& corpus);

/// The newest state in the folder whose checksum is right, for a run whose state now is `like`; says when that is not
/// the last one that was saved, and ends a save that was cut short once the state was written. None when there is no
/// checkpoint. Throws FileError when all are damaged or the newest cannot be read, ValueError when the run had another
/// text, configuration or instruction set, or weights that are not finite.
std::optional<examples::TrainerState> load_checkpoint(const std::filesystem::path& folder,
                                                      const examples::TrainerState& like, const Config& config,
                                                      const examples::Corpus& corpus);

/// Gives every rank the model, the optimizer, the step and the generator of rank 0.
void share_state(examples::TrainerState& state, const Config& config, dist::Communicator& ranks);

/// Throws ValueError unless the run that config.json or a checkpoint describes is the one of `config` and `corpus`.
void check_same_run(const nlohmann::json& earlier, const std::string& text_checksum,
                    const std::string& tokenizer_checksum, const Config& config, const examples::Corpus& corpus);

}  // namespace braid::train_lm
