#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "settings.h"

namespace braid::stability {

/// A network, how long it is trained, and what is compared on it: every mode with every learning rate and seed.
struct TaskConfig {
  std::int64_t sublayers, channels, batch, steps;
  std::int64_t warmup;                  ///< steps over which the learning rate rises, linearly
  std::int64_t hidden = 0;              ///< channels inside an MLP; the transformer has 4 * channels
  std::int64_t heads = 0, context = 0;  ///< transformer
  std::vector<Mode> modes;
  std::vector<double> learning_rates;
  double shown_learning_rate;  ///< one of them: that of the figures over steps and depth
  std::vector<std::uint64_t> seeds;
};

/// What is varied, one setting at a time, around the defaults. Absent lists vary nothing.
struct Ablations {
  Task task;
  double learning_rate;
  std::vector<std::uint64_t> seeds;
  std::vector<std::int64_t> streams, sinkhorn_iterations, max_history;
  std::vector<std::string> mixings, constraints, inits;
};

struct Config {
  std::string text;          ///< the file, word for word
  double divergence;         ///< a run has diverged when its loss exceeds this multiple of its first loss
  std::int64_t probe_every;  ///< steps between lines with everything by sublayer
  Variant connection;
  std::array<std::optional<TaskConfig>, kTasks> tasks;  ///< by Task
  std::optional<Ablations> ablations;

  const TaskConfig& task(Task task) const { return *tasks[static_cast<std::size_t>(task)]; }
};

/// Throws FileError or ValueError with one line that names file and key, what was expected and what came.
Config read_config(const std::string& file);

}  // namespace braid::stability
