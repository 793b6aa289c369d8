#include "groups.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace braid::stability {

Group select(std::span<const Result> results, const RunSettings& run, std::span<const std::uint64_t> seeds) {
  Group group;
  RunSettings wanted = run;
  for (const std::uint64_t seed : seeds) {
    wanted.seed = seed;
    const std::string name = id(wanted);
    std::ranges::copy_if(results, std::back_inserter(group), [&](const Result& r) { return id(r.run) == name; });
  }
  return group;
}

std::size_t diverged(const Group& group) {
  return static_cast<std::size_t>(std::ranges::count_if(group, &Result::diverged));
}

Spread spread(const Group& group, double Result::*member) {
  std::vector<double> values;
  for (const Result& r : group)
    if (std::isfinite(r.*member)) values.push_back(r.*member);
  const std::size_t missing = group.size() - values.size(), middle = values.size() / 2;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {kNone, kNone, kNone, missing};
  std::ranges::sort(values);
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back(), missing};
}

std::string spread_cell(const Group& group, double Result::*member) {
  const Spread s = spread(group, member);
  if (std::isnan(s.median)) return median_cell(group, member);
  const std::string more = s.not_finite > 0 ? fmt::format(", {} not finite", s.not_finite) : "";
  return fmt::format("{:.4g} ({:.4g} to {:.4g}{})", s.median, s.low, s.high, more);
}

std::string median_cell(const Group& group, double Result::*member) {
  const Spread s = spread(group, member);
  if (!std::isnan(s.median)) return fmt::format("{:.4g}", s.median);
  return group.empty() ? "-" : "not finite";
}

std::string diverged_cell(const Group& group) { return fmt::format("{} of {}", diverged(group), group.size()); }

std::string group_head(const std::string& first) {
  return fmt::format(
      "| {} | diverged | final loss | forward gain | backward gain | row error | column error |\n"
      "|---|---|---|---|---|---|---|\n",
      first);
}

std::string group_row(const std::string& first, const Group& group) {
  return fmt::format("| {} | {} | {} | {} | {} | {:.1e} | {:.1e} |\n", first, diverged_cell(group),
                     spread_cell(group, &Result::final_loss), spread_cell(group, &Result::forward_gain),
                     spread_cell(group, &Result::backward_gain), spread(group, &Result::row_error).high,
                     spread(group, &Result::column_error).high);
}

}  // namespace braid::stability
