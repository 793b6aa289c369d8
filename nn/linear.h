#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/random.h>

namespace braid::nn {

/// Settings of Linear.
struct LinearSettings {
  bool bias = true;  ///< whether there is one
  DType dtype = DType::f32;
};

/// `y = x weight^T + bias`, x [..., in] -> [..., out].
/// Weight and bias start from U(-1/sqrt(in), 1/sqrt(in)), which keeps a third of the variance of the input.
struct Linear {
  Var weight;  ///< [out, in]
  Var bias;    ///< [out], undefined without one

  /// Throws ValueError unless in and out are at least 1.
  Linear(std::int64_t in, std::int64_t out, Rng& rng, const LinearSettings& settings = {});

  bool has_bias() const { return bias.value().defined(); }  ///< whether there is one
  Var operator()(const Var& x) const;

  void params(auto&& visit) {
    visit("weight", weight);
    if (has_bias()) visit("bias", bias);
  }
};

}  // namespace braid::nn
