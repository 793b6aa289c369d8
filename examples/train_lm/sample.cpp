#include "sample.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace braid::train_lm {
namespace {

constexpr double kTemperature = 0.8;

/// Draws an id with probability softmax(logits / temperature).
std::int32_t draw(const Tensor& logits, Rng& rng) {
  std::vector<double> weights = logits.to_vector<double>();
  const double top = std::ranges::max(weights);
  double total = 0;
  for (double& w : weights) total += w = std::exp((w - top) / kTemperature);
  double rest = rng.uniform() * total;
  std::size_t id = 0;
  while (id + 1 < weights.size() && (rest -= weights[id]) >= 0) ++id;
  return static_cast<std::int32_t>(id);
}

}  // namespace

std::string sample_text(const examples::Model& model, const examples::Corpus& corpus, std::int64_t length, Rng rng) {
  const std::int64_t context = model.config.context;
  std::vector<std::int32_t> ids{corpus.id('\n').value_or(0)};
  for (std::int64_t i = 0; i < length; ++i) {
    const auto seen = std::min<std::int64_t>(context, static_cast<std::int64_t>(ids.size()));
    const Tensor window =
        Tensor::of<std::int32_t>({1, seen}, std::span<const std::int32_t>(ids).last(static_cast<std::size_t>(seen)));
    ids.push_back(draw(model.logits(window).value().select(1, -1).contiguous(), rng));
  }
  return corpus.decode(std::span(ids).subspan(1));
}

}  // namespace braid::train_lm
