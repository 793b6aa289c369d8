#include "prediction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace braid::look {
namespace {

Prediction predict(std::span<const double> row, std::int32_t target, std::size_t likely) {
  const double most = *std::ranges::max_element(row);
  double sum = 0;
  for (const double v : row) sum += std::exp(v - most);
  const auto log_probability = [&](std::int32_t id) {
    return row[static_cast<std::size_t>(id)] - most - std::log(sum);
  };
  std::vector<std::int32_t> ids(likely > 0 ? row.size() : 0);
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(likely, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](std::int32_t a, std::int32_t b) {
    const double x = row[static_cast<std::size_t>(a)], y = row[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  });
  Prediction result{.loss = -log_probability(target), .likely = {}};
  for (auto id = ids.begin(); id != end; ++id) result.likely.emplace_back(*id, std::exp(log_probability(*id)));
  return result;
}

}  // namespace

std::vector<Prediction> predictions(const Tensor& logits, std::span<const std::int32_t> targets, std::size_t likely) {
  const std::vector<double> all = logits.to(DType::f64).to_vector<double>();
  const auto vocab = static_cast<std::size_t>(logits.size(-1));
  std::vector<Prediction> result;
  for (std::size_t t = 0; t < targets.size(); ++t)
    result.push_back(predict(std::span(all).subspan(t * vocab, vocab), targets[t], likely));
  return result;
}

double mean_loss(const std::vector<Prediction>& predictions) {
  double sum = 0;
  for (const Prediction& p : predictions) sum += p.loss;
  return sum / static_cast<double>(predictions.size());
}

}  // namespace braid::look
