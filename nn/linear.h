#pragma once
#include <optional>

#include <braid/autograd/params.h>
#include <braid/core/random.h>

namespace braid::nn {

/// Settings of Linear.
struct LinearSettings {
  bool bias = true;  ///< whether there is one
  DType dtype = DType::f32;
};

/// The parameters of a linear map or a convolution.
struct WeightAndBias {
  Var weight;  ///< [out, ...]
  Var bias;    ///< [out], undefined without one

  bool has_bias() const { return bias.value().defined(); }  ///< whether there is one

  void params(auto&& visit) {
    visit("weight", weight);
    if (has_bias()) visit("bias", bias);
  }

 protected:
  /// From U(-b, b) with b = 1/sqrt(inputs of an output).
  void draw(const Shape& shape, Rng& rng, const LinearSettings& settings);
};

/// A change of a Linear's weight by a matrix of low rank, `scale b a`. arXiv:2106.09685.
struct LowRank {
  Var a;         ///< [rank, in]
  Var b;         ///< [out, rank], zeros at the start
  double scale;  ///< of the product

  void params(auto&& visit) {
    visit("a", a);
    visit("b", b);
  }
};

/// `y = x weight^T + bias`, x [..., in] -> [..., out], with a weight [out, in].
/// Weight and bias start from U(-1/sqrt(in), 1/sqrt(in)), which keeps a third of the variance of the input.
struct Linear : WeightAndBias {
  std::optional<LowRank> lora = {};  ///< see add_lora()

  /// Throws ValueError unless in and out are at least 1.
  Linear(std::int64_t in, std::int64_t out, Rng& rng, const LinearSettings& settings = {});

  Var operator()(const Var& x) const;  ///< x [..., in] -> [..., out]

  void params(auto&& visit) {
    WeightAndBias::params(visit);
    visit("lora", lora);
  }
};

/// A Linear without a bias for each of `groups` equal parts of the last axis, x [..., groups in] -> [..., groups out],
/// from U(-1/sqrt(in), 1/sqrt(in)).
struct GroupedLinear {
  int groups;  ///< the number of parts
  Var weight;  ///< [groups out, in]

  /// Throws ValueError unless all are at least 1.
  GroupedLinear(int groups, std::int64_t in, std::int64_t out, Rng& rng, DType dtype = DType::f32);

  /// Throws ShapeError unless the last axis of x has size groups in.
  Var operator()(const Var& x) const;

  void params(auto&& visit) { visit("weight", weight); }
};

}  // namespace braid::nn
