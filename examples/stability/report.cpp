#include "report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <ostream>
#include <sstream>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <braid/core/atomic_file.h>

#include "plan.h"

namespace braid::stability {
namespace {

namespace fs = std::filesystem;

/// The results of one setting, a seed each.
using Group = std::vector<Result>;

Group select(std::span<const Result> results, Task task, Mode mode, const Variant& variant, double rate,
             std::span<const std::uint64_t> seeds) {
  Group group;
  for (const std::uint64_t seed : seeds) {
    const std::string wanted = id({task, mode, variant, rate, seed});
    for (const Result& result : results)
      if (id(result.run) == wanted) group.push_back(result);
  }
  return group;
}

/// Median, least and most of what is finite, and how many are not.
struct Spread {
  double median = std::numeric_limits<double>::quiet_NaN(), low = median, high = median;
  std::size_t not_finite = 0;
};

Spread spread(const Group& group, double Result::*member) {
  std::vector<double> values;
  for (const Result& r : group)
    if (std::isfinite(r.*member)) values.push_back(r.*member);
  Spread s{.not_finite = group.size() - values.size()};
  if (values.empty()) return s;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  s.median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  s.low = values.front();
  s.high = values.back();
  return s;
}

std::string cell(const Group& group, double Result::*member) {
  const Spread s = spread(group, member);
  if (std::isnan(s.median)) return group.empty() ? "-" : "not finite";
  const std::string more = s.not_finite > 0 ? fmt::format(", {} not finite", s.not_finite) : "";
  return fmt::format("{:.4g} ({:.4g} to {:.4g}{})", s.median, s.low, s.high, more);
}

std::size_t diverged(const Group& group) {
  return static_cast<std::size_t>(std::ranges::count_if(group, &Result::diverged));
}

std::string columns(std::string first) {
  return fmt::format(
      "| {} | diverged | final loss | forward gain | backward gain | row error | column error |\n"
      "|---|---|---|---|---|---|---|\n",
      first);
}

std::string row(const std::string& first, const Group& group) {
  return fmt::format("| {} | {} of {} | {} | {} | {} | {:.1e} | {:.1e} |\n", first, diverged(group), group.size(),
                     cell(group, &Result::final_loss), cell(group, &Result::forward_gain),
                     cell(group, &Result::backward_gain), spread(group, &Result::row_error).high,
                     spread(group, &Result::column_error).high);
}

/// What compares the modes on one task.
class Comparison {
 public:
  Comparison(Task task, const Config& config, std::span<const Result> results)
      : task_(task), sizes_(config.task(task)), variant_(config.connection), results_(results) {}

  std::string text() const {
    return fmt::format("## {}\n\n{} sublayers of {} channels, {} steps, {} seeds.\n\n", name(task_), sizes_.sublayers,
                       sizes_.channels, sizes_.steps, sizes_.seeds.size()) +
           shown_rate() + statements() + sweep();
  }

 private:
  bool has(Mode mode) const { return std::ranges::count(sizes_.modes, mode) > 0; }
  Group at(Mode mode, double rate) const { return select(results_, task_, mode, variant_, rate, sizes_.seeds); }
  Group shown(Mode mode) const { return at(mode, sizes_.shown_learning_rate); }

  /// Over the whole sweep.
  Group all(Mode mode) const {
    Group group;
    for (const double rate : sizes_.learning_rates) std::ranges::copy(at(mode, rate), std::back_inserter(group));
    return group;
  }

  std::string shown_rate() const {
    std::string text = fmt::format("At learning rate {}: the median over seeds, least to most.\n\n{}",
                                   sizes_.shown_learning_rate, columns("mode"));
    for (const Mode mode : sizes_.modes) text += row(std::string(name(mode)), shown(mode));
    return text + "\n";
  }

  std::string statements() const {
    if (!has(Mode::hc) || !has(Mode::mhc) || !has(Mode::residual)) return "";
    std::string text = "| statement | measured | holds |\n|---|---|---|\n";
    const auto add = [&](const std::string& statement, const std::string& measured, bool holds) {
      text += fmt::format("| {} | {} | {} |\n", statement, measured, holds ? "yes" : "no");
    };
    const Group hc = shown(Mode::hc), mhc = shown(Mode::mhc);
    double ratio = std::numeric_limits<double>::infinity();
    for (const Result& a : hc)
      for (const Result& b : mhc)
        if (a.run.seed == b.run.seed) ratio = std::min(ratio, a.forward_gain / b.forward_gain);
    add("forward gain of hc at least 100 times mhc's, every seed", fmt::format("at least {:.4g} times", ratio),
        ratio >= 100 && std::isfinite(ratio));
    const Spread forward = spread(mhc, &Result::forward_gain), backward = spread(mhc, &Result::backward_gain);
    const double off = std::max(std::abs(forward.low - 1), std::abs(forward.high - 1));
    add("forward gain of mhc within 0.001 of 1, every seed", fmt::format("at most {:.1e} away", off), off <= 1e-3);
    add("backward gain of mhc below 2, every seed", fmt::format("at most {:.4g}", backward.high), backward.high < 2);
    const std::size_t h = diverged(all(Mode::hc)), m = diverged(all(Mode::mhc)), r = diverged(all(Mode::residual));
    const std::size_t n = all(Mode::hc).size();
    add("hc diverges more often than mhc over the sweep", fmt::format("{} against {} of {}", h, m, n), h > m);
    add("mhc diverges no more often than residual", fmt::format("{} against {} of {}", m, r, n), m <= r);
    return text + "\n";
  }

  std::string sweep() const {
    std::string text = "Runs that diverged, by learning rate:\n\n| mode |";
    for (const double rate : sizes_.learning_rates) text += fmt::format(" {} |", rate);
    text += " all |\n|---|";
    for (std::size_t i = 0; i <= sizes_.learning_rates.size(); ++i) text += "---|";
    for (const Mode mode : sizes_.modes) {
      text += fmt::format("\n| {} |", name(mode));
      for (const double rate : sizes_.learning_rates) {
        const Group group = at(mode, rate);
        text += fmt::format(" {} of {} |", diverged(group), group.size());
      }
      text += fmt::format(" {:.0f} % |", 100.0 * static_cast<double>(diverged(all(mode))) /
                                             static_cast<double>(std::max<std::size_t>(1, all(mode).size())));
    }
    return text + "\n\n";
  }

  Task task_;
  const TaskConfig& sizes_;
  const Variant& variant_;
  std::span<const Result> results_;
};

std::string ablation_tables(const Config& config, std::span<const Result> results) {
  if (!config.ablations) return "";
  const Ablations& a = *config.ablations;
  std::string text =
      fmt::format("## Ablations\n\n{}, learning rate {}, {} seeds; everything else at its default.\n\n{}", name(a.task),
                  a.learning_rate, a.seeds.size(), columns("setting"));
  for (const Ablation& ablation : ablations(config))
    for (const auto& [value, variant] : ablation.values)
      text += row(fmt::format("{}: {} {}", name(ablation.mode), ablation.setting, value),
                  select(results, a.task, ablation.mode, variant, a.learning_rate, a.seeds));
  return text + "\n";
}

std::string figure_links(const Folder& folder) {
  constexpr std::array<std::pair<const char*, const char*>, 6> kFigures = {{
      {"gain.png", "Composite gain by depth"},
      {"divergence.png", "Divergence rate by learning rate"},
      {"loss.png", "Loss, with the spread over seeds"},
      {"gradient_norm.png", "Gradient norm by sublayer"},
      {"activation_norm.png", "Activation norm by sublayer"},
      {"ablations.png", "Ablations"},
  }};
  std::string text = "## Figures\n\n";
  for (const auto& [file, title] : kFigures)
    if (fs::exists(folder.figures() / file)) text += fmt::format("### {}\n\n![{}](figures/{})\n\n", title, title, file);
  return text;
}

}  // namespace

std::string tables(const Config& config, std::span<const Result> results) {
  std::string text;
  for (std::size_t task = 0; task < kTasks; ++task)
    if (config.tasks[task]) text += Comparison(static_cast<Task>(task), config, results).text();
  return text + ablation_tables(config, results);
}

void write_report(const Folder& folder, const Config& config, std::span<const Result> results) {
  std::ifstream file(folder.info());
  const nlohmann::json info = nlohmann::json::parse(file);
  const auto& last = info.at("sessions").back();
  const std::size_t planned = plan(config).size();
  write_file_atomically(folder.report(), [&](std::ostream& out) {
    out << "# Stability of connections in deep networks\n\n```\n"
        << last.at("command").get<std::string>() << "\n```\n\n"
        << fmt::format("{} of {} runs, commit {}, {}.\n\n", results.size(), planned,
                       last.at("git_commit").get<std::string>(), last.at("machine").at("processor").get<std::string>())
        << fmt::format(
               "A run has *diverged* when its loss is not finite or exceeds {} times its first loss; it stops "
               "there. Gains are those of the product of all residual maps at a run's last probe: forward the "
               "largest absolute row sum, backward the largest absolute column sum, averaged over tokens. "
               "Errors are the largest of any map.\n\n",
               config.divergence)
        << tables(config, results) << figure_links(folder)
        << "Each run's lines are in `runs/`, one line a run in `summary.csv`, the configuration in `config.toml`.\n";
  });
}

}  // namespace braid::stability
