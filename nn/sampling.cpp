#include <braid/nn/sampling.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <braid/core/error.h>

namespace braid::nn {
namespace {

std::vector<double> checked_logits(const Tensor& logits) {
  const bool is_row = logits.rank() >= 1 && logits.numel() > 0 && logits.size(-1) == logits.numel();
  check_shape(is_row, "sample: logits must have shape [vocab] or [1, vocab] but have {}", logits.shape());
  std::vector<double> values = logits.to_vector<double>();
  for (std::size_t id = 0; id < values.size(); ++id)
    check_value(values[id] < INFINITY, "sample: logits must be finite or -inf but that of {} is {}", id, values[id]);
  check_value(std::isfinite(std::ranges::max(values)), "sample: no id is possible, as all logits are -inf");
  return values;
}

/// Makes all weights zero but those of the ids that may be drawn.
void restrict(std::vector<double>& weights, const SamplingSettings& s) {
  const auto k = static_cast<std::ptrdiff_t>(s.top_k);
  const bool all = k == 0 || k >= std::ssize(weights);
  if (all && s.top_p == 1) return;
  std::vector<std::size_t> ids(weights.size());  // the candidates
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  const auto more = [&](std::size_t a, std::size_t b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  };
  const auto less = [&](std::size_t a, std::size_t b) { return more(b, a); };
  if (!all) {
    std::ranges::partial_sort(ids, ids.begin() + k, more);
    ids.resize(static_cast<std::size_t>(k));
  }
  double rest = 0;
  for (const std::size_t id : ids) rest += weights[id];
  rest *= s.top_p;
  std::vector<double> kept(weights.size());
  std::ranges::make_heap(ids, less);  // few are needed of many
  for (auto end = ids.end(); end != ids.begin() && (rest > 0 || s.top_p == 1); --end) {
    const std::size_t id = ids.front();
    kept[id] = weights[id];
    rest -= weights[id];
    std::ranges::pop_heap(ids.begin(), end, less);
  }
  weights = std::move(kept);
}

}  // namespace

const SamplingSettings& checked(const SamplingSettings& s) {
  check_value(s.temperature > 0 && std::isfinite(s.temperature), "sample: temperature must be > 0 but is {}",
              s.temperature);
  check_value(s.top_k >= 0, "sample: top_k must be >= 0 but is {}", s.top_k);
  check_value(s.top_p > 0 && s.top_p <= 1, "sample: top_p must be in (0, 1] but is {}", s.top_p);
  return s;
}

std::int32_t sample(const Tensor& logits, const SamplingSettings& settings, Rng& rng) {
  checked(settings);
  std::vector<double> weights = checked_logits(logits);
  const double top = std::ranges::max(weights);
  for (double& w : weights) w = std::exp((w - top) / settings.temperature);
  restrict(weights, settings);
  double rest = rng.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t drawn = 0;
  for (std::size_t id = 0; id < weights.size(); ++id) {
    if (weights[id] == 0) continue;
    drawn = id;
    if ((rest -= weights[id]) < 0) break;
  }
  return static_cast<std::int32_t>(drawn);
}

std::int32_t most_likely(const Tensor& logits) {
  const std::vector<double> values = checked_logits(logits);
  return static_cast<std::int32_t>(std::ranges::max_element(values) - values.begin());
}

}  // namespace braid::nn
