#include "plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace braid::stability {
namespace {

/// Adds an ablation per mode: the default variant with each of `values` in one member.
template <class T>
void add(std::vector<Ablation>& list, const Config& config, const char* setting, const std::vector<T>& values,
         T Variant::*member, std::initializer_list<Mode> modes) {
  if (values.empty()) return;
  for (const Mode mode : modes) {
    Ablation& ablation = list.emplace_back(Ablation{setting, mode, {}});
    for (const T& value : values) {
      Variant variant = config.connection;
      variant.*member = value;
      ablation.values.emplace_back(fmt::format("{}", value), variant);
    }
  }
}

std::vector<RunSettings> comparison_runs(Task task, const TaskConfig& t, const Variant& variant) {
  std::vector<RunSettings> runs;
  for (const std::uint64_t seed : t.seeds)
    for (const double rate : t.learning_rates)
      for (const Mode mode : t.modes) runs.push_back({task, mode, variant, rate, seed});
  return runs;
}

}  // namespace

std::vector<Ablation> ablations(const Config& config) {
  std::vector<Ablation> list;
  if (!config.ablations) return list;
  const Ablations& a = *config.ablations;
  add(list, config, "streams", a.streams, &Variant::streams, {Mode::hc, Mode::mhc});
  add(list, config, "sinkhorn_iterations", a.sinkhorn_iterations, &Variant::sinkhorn_iterations, {Mode::mhc});
  add(list, config, "mixing", a.mixings, &Variant::mixing, {Mode::mhc});
  add(list, config, "max_history", a.max_history, &Variant::max_history, {Mode::skip_hc, Mode::skip_mhc});
  add(list, config, "constraint", a.constraints, &Variant::constraint, {Mode::skip_mhc});
  add(list, config, "init", a.inits, &Variant::init, {Mode::skip_hc, Mode::skip_mhc});
  return list;
}

std::vector<RunSettings> plan(const Config& config) {
  std::vector<RunSettings> runs;
  std::map<std::uint64_t, std::size_t> rank;  // the index of a seed among those of its task
  const auto take = [&](std::vector<RunSettings> more, const std::vector<std::uint64_t>& seeds) {
    for (std::size_t i = 0; i < seeds.size(); ++i)
      rank[seeds[i]] = std::min(rank.try_emplace(seeds[i], i).first->second, i);
    runs.insert(runs.end(), more.begin(), more.end());
  };
  for (std::size_t task = 0; task < kTasks; ++task)
    if (const auto& t = config.tasks[task])
      take(comparison_runs(static_cast<Task>(task), *t, config.connection), t->seeds);
  for (const Ablation& ablation : ablations(config)) {
    const Ablations& a = *config.ablations;
    std::vector<RunSettings> more;
    for (const auto& [value, variant] : ablation.values)
      for (const std::uint64_t seed : a.seeds) more.push_back({a.task, ablation.mode, variant, a.learning_rate, seed});
    take(std::move(more), a.seeds);
  }
  std::set<std::string> seen;
  std::erase_if(runs, [&](const RunSettings& run) { return !seen.insert(id(run)).second; });
  std::ranges::stable_sort(runs, {}, [&](const RunSettings& run) { return rank[run.seed]; });
  return runs;
}

}  // namespace braid::stability
