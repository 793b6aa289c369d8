#pragma once
#include <braid/nn/rms_norm.h>

namespace braid::nn {

/// Layer normalization over the last axis, `y = (x - mean) / sqrt(var + eps) * weight + bias`. arXiv:1607.06450.
struct LayerNorm {
  Var weight;  ///< [channels], ones at the start
  Var bias;    ///< [channels], zeros at the start
  double eps;  ///< added to the variance

  explicit LayerNorm(std::int64_t channels, const NormSettings& settings = {});

  Var operator()(const Var& x) const;

  void params(auto&& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

}  // namespace braid::nn
