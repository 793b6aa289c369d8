#include <braid/nn/optim/schedule.h>

#include <cmath>
#include <numbers>

#include <braid/core/error.h>

namespace braid::nn {

Schedule constant_lr(double lr) {
  check_value(lr >= 0, "constant_lr: lr must be at least 0 but is {}", lr);
  return [lr](std::int64_t) { return lr; };
}

Schedule warmup_cosine(const WarmupCosineSettings& settings) {
  check_value(0 <= settings.warmup && settings.warmup <= settings.total,
              "warmup_cosine: warmup must be in [0, total = {}] but is {}", settings.total, settings.warmup);
  check_value(0 <= settings.floor && settings.floor <= settings.peak,
              "warmup_cosine: floor must be in [0, peak = {}] but is {}", settings.peak, settings.floor);
  return [s = settings](std::int64_t step) {
    if (step < s.warmup) return s.peak * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
    if (step >= s.total) return s.floor;
    const double done = static_cast<double>(step - s.warmup) / static_cast<double>(s.total - s.warmup);
    return s.floor + (s.peak - s.floor) * (1 + std::cos(std::numbers::pi * done)) / 2;
  };
}

}  // namespace braid::nn
