#pragma once
#include <iosfwd>

#include "config.h"

namespace braid::stability {

/// Trains one run with AdamW, a linear warmup and then a constant learning rate, no clipping and no decay, and writes
/// one JSON object per line: the settings, then each step, then the result. The lines depend on `config` and `run`
/// alone.
///
/// A step's line describes the parameters before its update: loss and the norm of the whole gradient, and every
/// probe_every steps and at the end "sublayers": for each the gradient's norm over its own weights, the root mean
/// square of the stream after it, and mhc::ConnectionStats of a fixed batch; every sharpness_every steps "sharpness":
/// see Sharpness. null stands for NaN and infinity.
void train_run(const Config& config, const RunSettings& run, std::ostream& out);

/// The seconds per step on this machine, measured over a few steps.
double seconds_per_step(const Config& config, const RunSettings& run);

}  // namespace braid::stability
