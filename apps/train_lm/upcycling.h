#pragma once
#include "../common/trainer.h"
#include "config.h"

namespace braid::train_lm {

/// The corpus of the configuration, whose characters have the ids that the model of --init gives them. Throws what
/// apps::read_corpus() does.
apps::Corpus read_corpus(const Config& config);

/// Gives the trainer's model the parameters of the run that --init names. Connections keep their own initial values
/// unless those of the run have the same parameters: then `config` gets the run's settings of initial values. Throws
/// ValueError when the run was trained on other characters, or when the command line has other such settings.
void start_from_origin(Config& config, const apps::Corpus& corpus, apps::Trainer& trainer);

/// The held-out loss of the run's own model, under its own connections.
double held_out_of_origin(const Config& config, const apps::Corpus& corpus);

}  // namespace braid::train_lm
