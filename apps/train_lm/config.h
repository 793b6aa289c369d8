#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "../common/trainer.h"
#include "saved_run.h"

namespace braid::train_lm {

/// Everything that a run depends on. Flags have the same names.
struct Config {
  std::string text;                        ///< empty: the license texts of the system
  std::string tokenizer;                   ///< empty: characters
  std::filesystem::path init;              ///< a run to start from; empty: from random weights
  std::shared_ptr<const SavedRun> origin;  ///< what is there
  examples::TrainerSettings training;
  std::int64_t eval_every = 250, checkpoint_every = 250;
  std::int64_t telemetry_every = 0;  ///< 0: never
  bool tensorboard = false;          ///< write events for it
  bool report = false;               ///< write report.html, with samples, at evaluations
  std::int64_t check_gradients = 0;  ///< every how many steps; 0: never
  int threads = 0;                   ///< 0: all
  std::filesystem::path out;
  bool resume = false;
  std::int64_t sample = 400;
  bool skip_nonfinite = false;         ///< leave out steps whose loss or gradient is not finite, instead of ending
  bool allow_nonfinite = false;        ///< resume and save weights that are not finite
  bool allow_other_processor = false;  ///< resume where another instruction set rounds differently
};

/// Reads the command line. Throws ValueError or FileError when it is wrong.
Config parse(int argc, char** argv);

nlohmann::ordered_json to_json(const Config& config);

/// Throws ValueError naming the first setting that makes `config` another run than the one saved as `earlier`;
/// how long, how fast and how often it reports may change.
void check_same_settings(const nlohmann::json& earlier, const Config& config);

}  // namespace braid::train_lm
