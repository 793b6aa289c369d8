#include "tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "groups.h"
#include "plan.h"

namespace braid::stability {
namespace {

/// The tables that compare the modes on one task.
class Comparison {
 public:
  Comparison(Task task, const Config& config, std::span<const Result> results)
      : task_(task), sizes_(config.task(task)), variant_(config.connection), results_(results) {}

  std::string overview() const {
    return fmt::format("## {}\n\n{} sublayers of {} channels, {} steps, {} seeds.\n\n", name(task_), sizes_.sublayers,
                       sizes_.channels, sizes_.steps, sizes_.seeds.size()) +
           shown_rate() + statements() + sweep("Runs that diverged", diverged_cell);
  }

  std::string details() const {
    const auto median = [this](const char* title, double Result::*member) {
      return sweep(fmt::format("{}, median", title), [=](const Group& group) { return median_cell(group, member); });
    };
    return fmt::format("## {} by learning rate\n\n", name(task_)) + median("Final loss", &Result::final_loss) +
           median("Forward gain", &Result::forward_gain) + median("Backward gain", &Result::backward_gain);
  }

 private:
  bool has(Mode mode) const { return std::ranges::count(sizes_.modes, mode) > 0; }
  Group at(Mode mode, double rate) const { return select(results_, {task_, mode, variant_, rate, 0}, sizes_.seeds); }
  Group shown(Mode mode) const { return at(mode, sizes_.shown_learning_rate); }

  /// Over the whole sweep.
  Group all(Mode mode) const {
    Group group;
    for (const double rate : sizes_.learning_rates) std::ranges::copy(at(mode, rate), std::back_inserter(group));
    return group;
  }

  std::string shown_rate() const {
    std::string text = fmt::format("At learning rate {}: the median over seeds, least to most.\n\n{}",
                                   sizes_.shown_learning_rate, group_head("mode"));
    for (const Mode mode : sizes_.modes) text += group_row(std::string(name(mode)), shown(mode));
    return text + "\n";
  }

  /// The smallest ratio of forward gains, over the seeds that both modes have.
  double least_ratio(Mode above, Mode below) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Result& a : shown(above))
      for (const Result& b : shown(below))
        if (a.run.seed == b.run.seed) least = std::min(least, a.forward_gain / b.forward_gain);
    return least;
  }

  std::string statements() const {
    if (!has(Mode::hc) || !has(Mode::mhc) || !has(Mode::residual)) return "";
    std::string text = "| statement | measured | holds |\n|---|---|---|\n";
    const auto add = [&](const char* statement, const std::string& measured, bool holds) {
      text += fmt::format("| {} | {} | {} |\n", statement, measured, holds ? "yes" : "no");
    };
    const double ratio = least_ratio(Mode::hc, Mode::mhc);
    add("forward gain of hc at least 100 times mhc's, every seed", fmt::format("at least {:.4g} times", ratio),
        ratio >= 100 && std::isfinite(ratio));
    const Group mhc = shown(Mode::mhc);
    const Spread forward = spread(mhc, &Result::forward_gain), backward = spread(mhc, &Result::backward_gain);
    const double off = std::max(std::abs(forward.low - 1), std::abs(forward.high - 1));
    add("forward gain of mhc within 0.001 of 1, every seed", fmt::format("at most {:.1e} away", off), off <= 1e-3);
    add("backward gain of mhc below 2, every seed", fmt::format("at most {:.4g}", backward.high), backward.high < 2);
    const Group a = all(Mode::hc), b = all(Mode::mhc), c = all(Mode::residual);
    add("hc diverges more often than mhc over the sweep",
        fmt::format("{} against {}", diverged_cell(a), diverged_cell(b)), diverged(a) > diverged(b));
    add("mhc diverges no more often than residual", fmt::format("{} against {}", diverged_cell(b), diverged_cell(c)),
        diverged(b) <= diverged(c));
    return text + "\n";
  }

  /// A table with a row per mode and a column per learning rate.
  std::string sweep(const std::string& title, const std::function<std::string(const Group&)>& cell) const {
    std::string text = fmt::format("{}, by learning rate:\n\n| mode |", title), rule = "\n|---|";
    for (const double rate : sizes_.learning_rates) {
      text += fmt::format(" {} |", rate);
      rule += "---|";
    }
    text += rule;
    for (const Mode mode : sizes_.modes) {
      text += fmt::format("\n| {} |", name(mode));
      for (const double rate : sizes_.learning_rates) text += fmt::format(" {} |", cell(at(mode, rate)));
    }
    return text + "\n\n";
  }

  Task task_;
  const TaskConfig& sizes_;
  const Variant& variant_;
  std::span<const Result> results_;
};

std::string ablation_table(const Config& config, std::span<const Result> results) {
  if (!config.ablations) return "";
  const Ablations& a = *config.ablations;
  std::string text =
      fmt::format("## Ablations\n\n{}, learning rate {}, {} seeds; everything else at its default.\n\n{}", name(a.task),
                  a.learning_rate, a.seeds.size(), group_head("setting"));
  for (const Ablation& ablation : ablations(config))
    for (const auto& [value, variant] : ablation.values)
      text += group_row(fmt::format("{}: {} {}", name(ablation.mode), ablation.setting, value),
                        select(results, {a.task, ablation.mode, variant, a.learning_rate, 0}, a.seeds));
  return text + "\n";
}

}  // namespace

std::string overview(const Config& config, std::span<const Result> results) {
  std::string text;
  for (std::size_t task = 0; task < kTasks; ++task)
    if (config.tasks[task]) text += Comparison(static_cast<Task>(task), config, results).overview();
  return text;
}

std::string details(const Config& config, std::span<const Result> results) {
  std::string text;
  for (std::size_t task = 0; task < kTasks; ++task)
    if (config.tasks[task] && config.tasks[task]->learning_rates.size() > 1)
      text += Comparison(static_cast<Task>(task), config, results).details();
  return text + ablation_table(config, results);
}

}  // namespace braid::stability
