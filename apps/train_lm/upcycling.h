#pragma once
#include "../common/trainer.h"
#include "config.h"

namespace braid::train_lm {

/// Gives the trainer's model the parameters of the run that --init names. Connections keep their own initial values
/// unless those of the run have the same parameters. Throws ValueError when the run was trained on other characters.
void start_from_origin(const Config& config, const apps::Corpus& corpus, apps::Trainer& trainer);

/// The held-out loss of the run's own model, under its own connections.
double held_out_of_origin(const Config& config, const apps::Corpus& corpus);

}  // namespace braid::train_lm
