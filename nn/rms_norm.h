#pragma once
#include <braid/autograd/tape.h>

namespace braid::nn {

/// Settings of RMSNorm, LayerNorm and GroupNorm.
struct NormSettings {
  double eps = 1e-5;  ///< added to the mean square or the variance
  DType dtype = DType::f32;
};

/// Root mean square normalization over the last axis, `y = x / sqrt(mean(x^2) + eps) * weight`. arXiv:1910.07467.
struct RMSNorm {
  Var weight;  ///< [channels], ones at the start
  double eps;  ///< added to the mean square

  explicit RMSNorm(std::int64_t channels, const NormSettings& settings = {});

  Var operator()(const Var& x) const;

  void params(auto&& visit) { visit("weight", weight); }
};

}  // namespace braid::nn
