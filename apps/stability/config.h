#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "settings.h"

namespace braid::stability {

/// A network and its training. Runs compare every mode with every learning rate and seed.
struct TaskConfig {
  std::int64_t sublayers, channels, batch, steps;
  std::int64_t warmup;                  ///< steps over which the learning rate rises, linearly
  std::int64_t hidden = 0;              ///< channels inside an MLP; the transformer has 4 * channels
  std::int64_t heads = 0, context = 0;  ///< transformer
  std::vector<Mode> modes;
  std::vector<double> learning_rates;
  double shown_learning_rate;  ///< the one of learning_rates that figures over steps and depth show
  std::vector<std::uint64_t> seeds;
  std::optional<std::int64_t> sharpness_every = {};  ///< steps between measurements of the Hessian, which take long
};

/// Values of settings that are varied one at a time around the defaults. An empty list varies nothing.
struct Ablations {
  Task task;
  double learning_rate;
  std::vector<std::uint64_t> seeds;
  std::vector<std::int64_t> streams, sinkhorn_iterations, max_history;
  std::vector<std::string> mixings, constraints, inits;
};

struct Config {
  std::string text;          ///< the content of the file
  double divergence;         ///< a run has diverged when its loss exceeds this multiple of its first loss
  std::int64_t probe_every;  ///< steps between lines with values per sublayer
  Variant connection;
  std::array<std::optional<TaskConfig>, kTasks> tasks;  ///< by Task
  std::optional<Ablations> ablations;

  const TaskConfig& task(Task task) const { return *tasks[static_cast<std::size_t>(task)]; }
};

/// Reads a configuration file. Throws FileError or ValueError; the message is one line with the file, the key, the
/// expected and the actual value.
Config read_config(const std::string& file);

}  // namespace braid::stability
