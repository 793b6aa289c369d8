#pragma once
#include <cstdint>
#include <functional>

namespace braid::nn {

/// The learning rate of a step, counted from 0.
using Schedule = std::function<double(std::int64_t step)>;

/// The same rate at every step. Throws ValueError for a negative one.
Schedule constant_lr(double lr);

/// Settings of warmup_cosine.
struct WarmupCosineSettings {
  double peak = 1e-3;         ///< the highest rate
  double floor = 0;           ///< the rate at the end
  std::int64_t warmup = 0;    ///< steps of linear growth; the last one has the peak
  std::int64_t total = 1000;  ///< all steps, including the warm-up
};

/// Grows linearly to `peak`, then falls along half a cosine to `floor`, where it stays after `total` steps.
/// arXiv:1608.03983. Throws ValueError unless 0 <= warmup <= total and 0 <= floor <= peak.
Schedule warmup_cosine(const WarmupCosineSettings& settings);

}  // namespace braid::nn
