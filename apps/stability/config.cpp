#include "config.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "toml_reader.h"

namespace braid::stability {
namespace {

constexpr std::int64_t kMostSublayers = 1000, kMostChannels = 4096, kMostStreams = 64, kMostSteps = 1'000'000;
constexpr double kLeastRate = 1e-12, kMostRate = 1e3;
constexpr std::array<std::string_view, 3> kConstraints = {"simplex", "identity", "doubly_stochastic"};
constexpr std::array<std::string_view, 3> kInits = {"identity", "uniform", "zeros"};

/// The largest size of what a run saves for its backward pass, in bytes.
constexpr double kMostMemory = 16e9;

std::vector<std::uint64_t> read_seeds(TableReader& in) {
  const auto seeds = in.integers("seeds", 0, INT64_MAX);
  return {seeds.begin(), seeds.end()};
}

/// Some forty values per channel and token for each sublayer, n times as many with n streams: an order of magnitude.
double memory(const TaskConfig& t, std::int64_t streams) {
  const auto tokens = static_cast<double>(t.batch * std::max<std::int64_t>(t.context, 1));
  const auto width = static_cast<double>(t.channels * (4 * streams + 24) + 4 * t.hidden);
  return 4 * static_cast<double>(t.sublayers) * tokens * width;
}

/// Refuses lists whose runs, one for each seed and each of `others`, are too many.
void check_runs(TableReader& in, std::size_t seeds, std::size_t others) {
  constexpr std::size_t kMost = 100'000;
  if (seeds * others > kMost)
    in.fail("seeds", fmt::format("a list for at most {} runs", kMost), std::to_string(seeds * others));
}

TaskConfig read_task(TableReader in, Task task, std::int64_t streams) {
  TaskConfig t{};
  if (task == Task::transformer) {
    t.sublayers = 2 * in.integer("blocks", 1, kMostSublayers / 2);
    t.context = in.integer("context", 1, 4096);
    t.heads = in.integer("heads", 1, kMostChannels);
  } else {
    t.sublayers = in.integer("sublayers", 1, kMostSublayers);
    t.hidden = in.integer("hidden", 1, 4 * kMostChannels);
  }
  t.channels = in.integer("channels", 1, kMostChannels);
  if (t.heads > 0 && t.channels % t.heads != 0)
    in.fail("heads", fmt::format("a divisor of channels {}", t.channels), std::to_string(t.heads));
  t.batch = in.integer("batch", 1, 65536);
  t.steps = in.integer("steps", 2, kMostSteps);
  t.warmup = in.integer("warmup", 0, t.steps);
  for (const std::size_t mode : in.choices("modes", mode_names())) t.modes.push_back(static_cast<Mode>(mode));
  t.learning_rates = in.numbers("learning_rates", kLeastRate, kMostRate);
  t.shown_learning_rate = in.number("shown_learning_rate", kLeastRate, kMostRate);
  if (std::ranges::count(t.learning_rates, t.shown_learning_rate) == 0)
    in.fail("shown_learning_rate", "one of learning_rates", fmt::format("{}", t.shown_learning_rate));
  t.seeds = read_seeds(in);
  check_runs(in, t.seeds.size(), t.modes.size() * t.learning_rates.size());
  if (in.has("sharpness_every")) t.sharpness_every = in.integer("sharpness_every", 2, kMostSteps);
  in.finish();
  if (const double need = memory(t, streams); need > kMostMemory)
    in.fail("batch", "sizes whose activations fit into 16 GB", fmt::format("about {:.0f} GB", need / 1e9));
  return t;
}

/// The mixing, which must support the number of streams.
std::string read_mixing(TableReader& in, std::int64_t streams) {
  if (!in.has("mixing")) return "sinkhorn";
  const std::vector<std::string_view> names = mhc::mixing_names(streams);
  return std::string(names[in.choice("mixing", names)]);
}

Variant read_connection(TableReader in) {
  const std::int64_t streams = in.integer("streams", 1, kMostStreams);
  Variant v{.streams = streams,
            .sinkhorn_iterations = in.integer("sinkhorn_iterations", 1, 1000),
            .mixing = read_mixing(in, streams),
            .max_history = in.integer("max_history", 1, 1024),
            .init = std::string(kInits[in.choice("init", kInits)]),
            .constraint = std::string(kConstraints[in.choice("constraint", kConstraints)])};
  in.finish();
  return v;
}

std::vector<std::string> read_names(TableReader& in, const std::string& key, std::span<const std::string_view> names) {
  std::vector<std::string> list;
  if (in.has(key))
    for (const std::size_t i : in.choices(key, names)) list.emplace_back(names[i]);
  return list;
}

Ablations read_ablations(TableReader in, const Config& config) {
  const auto counts = [&](const char* key, std::int64_t most) {
    return in.has(key) ? in.integers(key, 1, most) : std::vector<std::int64_t>{};
  };
  Ablations a{};
  const std::size_t task = in.choice("task", task_names());
  if (!config.tasks[task]) in.fail("task", "a task that has a table of its own", std::string(task_names()[task]));
  a.task = static_cast<Task>(task);
  a.learning_rate = in.number("learning_rate", kLeastRate, kMostRate);
  a.seeds = read_seeds(in);
  a.streams = counts("streams", kMostStreams);
  for (const std::int64_t n : a.streams)
    if (const auto names = mhc::mixing_names(n); std::ranges::count(names, config.connection.mixing) == 0)
      in.fail("streams", "numbers that the mixing supports: " + config.connection.mixing, std::to_string(n));
  a.sinkhorn_iterations = counts("sinkhorn_iterations", 1000);
  if (!a.sinkhorn_iterations.empty() && config.connection.mixing != "sinkhorn")
    in.fail("sinkhorn_iterations", "no list, as the connection's mixing is another", config.connection.mixing);
  a.max_history = counts("max_history", 1024);
  a.mixings = read_names(in, "mixings", mhc::mixing_names(config.connection.streams));
  a.constraints = read_names(in, "constraints", kConstraints);
  a.inits = read_names(in, "inits", kInits);
  check_runs(in, a.seeds.size(),
             2 * (a.streams.size() + a.sinkhorn_iterations.size() + a.max_history.size() + a.mixings.size() +
                  a.constraints.size() + a.inits.size()));
  in.finish();
  return a;
}

}  // namespace

Config read_config(const std::string& file) {
  const toml::table root = read_toml(file);
  TableReader in(root, file);
  Config config{};
  std::ifstream stream(file, std::ios::binary);
  config.text.assign(std::istreambuf_iterator<char>(stream), {});
  config.divergence = in.number("divergence", 1, 1e6);
  config.probe_every = in.integer("probe_every", 1, kMostSteps);
  config.connection = read_connection(in.table("connection"));
  for (std::size_t task = 0; task < kTasks; ++task)
    if (const std::string key(task_names()[task]); in.has(key))
      config.tasks[task] = read_task(in.table(key), static_cast<Task>(task), config.connection.streams);
  if (std::ranges::none_of(config.tasks, [](const auto& t) { return t.has_value(); }))
    in.fail(std::string(task_names().front()), "at least one task", "none");
  if (in.has("ablations")) config.ablations = read_ablations(in.table("ablations"), config);
  in.finish();
  return config;
}

}  // namespace braid::stability
