#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../common/trainer.h"
#include "saved_run.h"

namespace braid::train_lm {

/// The configuration of a run. Flags have the same names.
struct Config {
  std::string text;                        ///< empty: the license texts of the system
  std::string tokenizer;                   ///< empty: characters
  std::filesystem::path init;              ///< folder of the model to start from; empty: random weights
  std::shared_ptr<const SavedRun> origin;  ///< the model in `init`
  std::set<std::string> initial_flags;     ///< those given among --alpha, --phi-std, --scale-init and --skip-init
  apps::TrainerSettings training;
  std::int64_t eval_every = 250, checkpoint_every = 250;
  std::int64_t telemetry_every = 0;  ///< 0: never
  bool tensorboard = false;          ///< write event files
  bool report = false;               ///< write report.html, with samples, at evaluations
  bool ledger = false;               ///< write ledger.jsonl
  std::int64_t check_gradients = 0;  ///< steps between checks; 0: never
  int threads = 0;                   ///< 0: all processors
  std::int64_t patience = 60;        ///< seconds after which all ranks end if one is silent
  std::filesystem::path out;
  bool resume = false;
  std::string command_to_resume;  ///< the command line, for a shell, with --resume and --out
  std::int64_t sample = 400;
  bool skip_nonfinite = false;         ///< skip steps whose loss or gradient is not finite, instead of ending
  bool allow_nonfinite = false;        ///< resume and save weights that are not finite
  bool allow_other_processor = false;  ///< resume where another instruction set rounds differently
};

/// Reads the command line. Throws ValueError or FileError when it is wrong.
Config parse(int argc, char** argv);

/// The value of --patience alone, which the ranks need before they can report what is wrong with a command line; the
/// default if it is wrong.
std::chrono::seconds patience(int argc, char** argv);

nlohmann::ordered_json to_json(const Config& config);

/// The settings in which `config` differs from the saved run `earlier`, as `lr 0.001 but now has 0.002`, without those
/// that may differ: of its length, learning rate schedule, speed and reports.
std::vector<std::string> changed_settings(const nlohmann::json& earlier, const Config& config);

}  // namespace braid::train_lm
