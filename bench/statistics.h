#pragma once
#include <algorithm>
#include <vector>

#include <benchmark/benchmark.h>

namespace braid::bench {

inline double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Adds the percentiles of the repetitions to the reported median.
inline benchmark::internal::Benchmark* with_percentiles(benchmark::internal::Benchmark* benchmark) {
  return benchmark->ComputeStatistics("p10", [](const std::vector<double>& v) { return percentile(v, 0.1); })
      ->ComputeStatistics("p90", [](const std::vector<double>& v) { return percentile(v, 0.9); });
}

}  // namespace braid::bench
