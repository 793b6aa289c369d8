#include <braid/autograd/derivative.h>

#include <algorithm>
#include <cmath>

namespace braid {

constexpr std::size_t kOrders = 7;
// Neither is a ratio of small numbers, so that no period of f fits the steps.
constexpr double kFirstStep = 0.0473, kRatio = 0.43, kLeap = 0.06;
constexpr double kSmallestStep = 1e-15;  // of the scale

bool Derivative::has_kink() const {
  return high - low > std::max(10 * bound_error, 1e-3 * std::max(std::abs(low), std::abs(high)));
}

void Extrapolation::Limit::add(double step, double quotient, double noise) {
  if (!std::isfinite(quotient)) {
    *this = Limit{power};
    return;
  }
  std::vector<double> next{quotient}, next_noises{noise};
  for (std::size_t order = 1; order <= std::min(row.size(), kOrders); ++order) {
    const double finer = next[order - 1], coarser = row[order - 1];
    const double ratio = std::pow(steps[steps.size() - order] / step, power) - 1;
    const double limit = finer + (finer - coarser) / ratio;
    next.push_back(limit);
    next_noises.push_back(next_noises[order - 1] + (next_noises[order - 1] + noises[order - 1]) / ratio);
    const double estimate = std::max(std::abs(limit - finer), std::abs(limit - coarser)) + 3 * next_noises[order];
    if (estimate <= error) {
      value = limit;
      error = estimate;
      rounding = next_noises[order];
    }
  }
  steps.push_back(step);
  row = std::move(next);
  noises = std::move(next_noises);
}

void Extrapolation::add(double step, const Moves& moves) {
  central_.add(step, (moves.up + moves.down) / (2 * step), moves.noise / (2 * step));
  up_.add(step, moves.up / step, moves.noise / step);
  down_.add(step, moves.down / step, moves.noise / step);
  const bool inside = std::isfinite(moves.up + moves.down);  // or else the bounds would be those of one side alone
  low_.add(step, inside ? moves.low / step : NAN, moves.bound_noise / step);
  high_.add(step, inside ? moves.high / step : NAN, moves.bound_noise / step);
}

Derivative Extrapolation::best() const {
  const Limit& limit = std::isfinite(central_.value) ? central_ : std::isfinite(up_.value) ? up_ : down_;
  const bool settled = limit.error < 0.1 * std::abs(limit.value) || limit.error <= 30 * limit.rounding;
  Derivative found{.value = limit.value, .error = limit.error, .settled = settled};
  if (&limit != &central_) return found;  // with the bounds of one side
  found.low = low_.value;
  found.high = high_.value;
  found.bound_error = std::max(low_.error, high_.error);
  return found;
}

bool Extrapolation::exhausted() const {
  return !central_.noises.empty() && 3 * central_.noises.front() > central_.error;
}

Derivative descend(double scale, const std::function<const Extrapolation&(double step)>& add,
                   const std::function<bool(const Derivative&)>& done) {
  Derivative best;
  int rungs = 0;
  for (double step = kFirstStep * scale; step > kSmallestStep * scale;) {
    const Extrapolation& found = add(step);
    best = found.best();
    if (++rungs >= 2 && (done(best) || found.exhausted())) break;
    step *= rungs >= 3 && !(best.error < 0.3 * std::abs(best.value)) ? kLeap : kRatio;
  }
  return best;
}

}  // namespace braid
