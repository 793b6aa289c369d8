#pragma once
#include <cstdint>

#include <braid/core/random.h>
#include <braid/core/tensor.h>

namespace braid::nn {

/// Settings of sample().
struct SamplingSettings {
  double temperature = 1;  ///< above 0; logits are divided by it
  std::int64_t top_k = 0;  ///< draws among the top_k most likely ids; 0: among all
  double top_p = 1;        ///< in (0, 1]; of these, draws among the most likely whose probabilities add up to top_p
};

/// Returns the settings. Throws ValueError naming the first that is out of its range.
const SamplingSettings& checked(const SamplingSettings& settings);

/// Draws an id with probability softmax(logits / temperature), among those that top_k and then top_p leave; of equal
/// logits they keep the lowest ids. logits [vocab] or [1, vocab]. Throws ShapeError for another shape, ValueError for
/// settings out of range, when a logit is NaN or infinity, or all are -infinity.
std::int32_t sample(const Tensor& logits, const SamplingSettings& settings, Rng& rng);

/// The id of the highest logit, the lowest id of equal ones; otherwise like sample.
std::int32_t most_likely(const Tensor& logits);

}  // namespace braid::nn
