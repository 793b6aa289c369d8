#pragma once
#include <braid/nn/layer_norm.h>
#include <braid/nn/rms_norm.h>

namespace braid::nn {

/// Which norm a Norm is.
enum class NormKind { rms, layer };

/// Normalization over the last axis, chosen at run time: an RMSNorm, or with a bias a LayerNorm, whose parameters it
/// has under the same names.
struct Norm {
  Var weight;  ///< [channels], ones at the start
  Var bias;    ///< [channels], zeros at the start; undefined in an RMSNorm
  double eps;  ///< added under the root

  Norm(const RMSNorm& norm) : weight(norm.weight), eps(norm.eps) {}
  Norm(const LayerNorm& norm) : weight(norm.weight), bias(norm.bias), eps(norm.eps) {}
  Norm(NormKind kind, std::int64_t channels, const NormSettings& settings = {})
      : Norm(kind == NormKind::rms ? Norm(RMSNorm(channels, settings)) : Norm(LayerNorm(channels, settings))) {}

  NormKind kind() const { return bias.value().defined() ? NormKind::layer : NormKind::rms; }  ///< told by the bias
  Var operator()(const Var& x) const;

  void params(auto&& visit) {
    visit("weight", weight);
    if (kind() == NormKind::layer) visit("bias", bias);
  }
};

}  // namespace braid::nn
