#pragma once
#include <braid/nn/rms_norm.h>

namespace braid::nn {

/// Group normalization of x [B, channels, ...]: each group of channels of each example is normalized over its channels
/// and all other axes. arXiv:1803.08494.
struct GroupNorm {
  Var weight;           ///< [channels], ones at the start
  Var bias;             ///< [channels], zeros at the start
  std::int64_t groups;  ///< of channels that are normalized together
  double eps;           ///< added to the variance

  /// Throws ValueError unless `groups` divides `channels`.
  GroupNorm(std::int64_t groups, std::int64_t channels, const NormSettings& settings = {});

  Var operator()(const Var& x) const;

  void params(auto&& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

}  // namespace braid::nn
