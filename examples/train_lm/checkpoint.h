#pragma once
#include <filesystem>

#include "../common/trainer.h"
#include "config.h"

namespace braid::train_lm {

/// Model, optimizer, step and generator, so that a run continues from them bit for bit.
void save_checkpoint(const std::filesystem::path& path, const examples::TrainerState& state, const Config& config,
                     const examples::Corpus& corpus);

/// The state saved there, for a run whose state now is `like`. Throws FileError or ValueError when the file is damaged
/// or of another run.
examples::TrainerState load_checkpoint(const std::filesystem::path& path, const examples::TrainerState& like,
                                       const Config& config, const examples::Corpus& corpus);

}  // namespace braid::train_lm
