#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::look {

/// What one row of logits predicts.
struct Prediction {
  double loss;                                          ///< -log of the probability of the target
  std::vector<std::pair<std::int32_t, double>> likely;  ///< the most likely ids and their probabilities
};

/// A row each of logits [T, vocab], for T targets in the vocabulary.
std::vector<Prediction> predictions(const Tensor& logits, std::span<const std::int32_t> targets, std::size_t likely);

double mean_loss(const std::vector<Prediction>& predictions);

}  // namespace braid::look
