#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "../common/step_record.h"
#include "config.h"

namespace braid::train_lm {

/// The configuration of a run, as its command line gave it. Throws FileError when the folder holds no run.
Config config_of_run(const std::filesystem::path& folder);

/// The lines of a run's ledger. Throws FileError when there is none.
std::vector<nlohmann::json> ledger_of(const std::filesystem::path& folder);

/// Computes one step of a run again, from its last checkpoint before the step or from its start, and records it.
/// Changes no file. Returns whether the gradients and parameters after it are those of the run's ledger. Throws
/// FileError when the run or its text cannot be read, ValueError when it has no such step.
bool replay(Config config, std::int64_t step, apps::StepRecord& record);

}  // namespace braid::train_lm
