#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../common/step_record.h"
#include "config.h"

namespace braid::train_lm {

/// The contents of a run's config.json; paths that are none from here are those of the folder that the run started in.
/// Throws FileError when the folder holds no run.
nlohmann::json settings_of_run(const std::filesystem::path& folder);

/// What settings_of_run() of two runs say that changes bits and differs, as `seed 1 and 2`.
std::vector<std::string> different_settings(const nlohmann::json& a, const nlohmann::json& b);

/// The configuration of a run, as its command line gave it. Throws FileError when the folder holds no run.
Config config_of_run(const std::filesystem::path& folder);

/// The lines of a ledger by their steps, of which some are missing after a --resume without --ledger.
using Ledger = std::map<std::int64_t, nlohmann::json>;

/// The ledger of a run. Throws FileError when there is none.
Ledger ledger_of(const std::filesystem::path& folder);

/// A step that was computed again.
struct Replay {
  apps::StepRecord record;
  nlohmann::json line;    ///< as in the ledger
  bool repeated = false;  ///< the run's ledger has that line
  double learning_rate = 0;
};

/// Computes one step of a run again, from its last checkpoint before the step or from its start, and records it, with
/// the elements of the event `kept`. Changes no file. Throws FileError when the run or its text cannot be read,
/// ValueError when it has no such step.
Replay replay(Config config, std::int64_t step, std::optional<std::size_t> kept);

}  // namespace braid::train_lm
