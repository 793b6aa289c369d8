#pragma once
#include <braid/autograd/tape.h>

namespace braid::nn {

struct NormSettings {
  double eps = 1e-5;
  DType dtype = DType::f32;
};

/// Root mean square normalization over the last axis, `y = x / sqrt(mean(x^2) + eps) * weight`. arXiv:1910.07467.
struct RMSNorm {
  Var weight;  // [channels], ones at the start
  double eps;

  explicit RMSNorm(std::int64_t channels, const NormSettings& settings = {});

  Var operator()(const Var& x) const;

  void params(auto&& visit) { visit("weight", weight); }
};

}  // namespace braid::nn
