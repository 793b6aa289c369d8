#pragma once
#include <vector>

#include "config.h"

namespace braid::stability {

/// The values of one setting that are tried on one mode.
struct Ablation {
  std::string setting;  ///< as in the configuration's [connection]
  Mode mode;
  std::vector<std::pair<std::string, Variant>> values;
};

/// The ablations of the configuration, each on the modes that its setting applies to.
std::vector<Ablation> ablations(const Config& config);

/// Every run, none twice: each task's modes, learning rates and seeds, then the ablations. Seeds vary slowest, so that
/// a plan that is stopped half-way has compared all modes with half of the seeds.
std::vector<RunSettings> plan(const Config& config);

}  // namespace braid::stability
