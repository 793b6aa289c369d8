#pragma once
#include <span>
#include <string>
#include <vector>

#include "results.h"

namespace braid::stability {

/// The results of one setting, one per seed.
using Group = std::vector<Result>;

/// The results of `run` with each of `seeds`.
Group select(std::span<const Result> results, const RunSettings& run, std::span<const std::uint64_t> seeds);

std::size_t diverged(const Group& group);

/// Median, minimum and maximum of the finite values (NaN if there are none), and the number of others.
struct Spread {
  double median, low, high;
  std::size_t not_finite;
};
Spread spread(const Group& group, double Result::*member);

// Cells of a Markdown table.

/// `0.12 (0.1 to 0.2)`
std::string spread_cell(const Group& group, double Result::*member);
/// `0.12`
std::string median_cell(const Group& group, double Result::*member);
/// `1 of 5`
std::string diverged_cell(const Group& group);

/// The head of a table whose first column is called `first`, and a row with the statistics of a group.
std::string group_head(const std::string& first);
std::string group_row(const std::string& first, const Group& group);

}  // namespace braid::stability
