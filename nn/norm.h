#pragma once
#include <braid/autograd/ops/group_norm.h>
#include <braid/autograd/tape.h>

namespace braid::nn {

/// Settings of RMSNorm, LayerNorm and Norm.
struct NormSettings {
  double eps = 1e-5;  ///< added to the mean square or the variance
  DType dtype = DType::f32;
  double offset = 0;  ///< added to the weights, which start at 1 - offset: 1 in Gemma
};

/// The kinds of Norm.
enum class NormKind { rms, layer };

/// Normalization over the last axis, chosen at run time: an RMSNorm or a LayerNorm, with the same parameter names.
struct Norm {
  Var weight;     ///< [channels], ones at the start
  Var bias;       ///< [channels], zeros at the start; undefined in an RMSNorm
  double eps;     ///< added to the mean square or the variance
  double offset;  ///< added to the weights

  /// Throws ValueError unless channels >= 1 and eps >= 0.
  Norm(NormKind kind, std::int64_t channels, const NormSettings& settings = {});

  NormKind kind() const { return kind_; }  ///< as constructed
  Var operator()(const Var& x) const;      ///< x [..., channels] -> [..., channels]

  void params(auto&& visit) {
    visit("weight", weight);
    if (kind_ == NormKind::layer) visit("bias", bias);
  }

 private:
  NormKind kind_;
};

/// Root mean square normalization over the last axis, `y = x / sqrt(mean(x^2) + eps) * weight`. arXiv:1910.07467.
struct RMSNorm : Norm {
  explicit RMSNorm(std::int64_t channels, const NormSettings& settings = {})
      : Norm(NormKind::rms, channels, settings) {}  ///< as Norm's
};

/// Layer normalization over the last axis, `y = (x - mean) / sqrt(var + eps) * weight + bias`. arXiv:1607.06450.
struct LayerNorm : Norm {
  explicit LayerNorm(std::int64_t channels, const NormSettings& settings = {})
      : Norm(NormKind::layer, channels, settings) {}  ///< as Norm's
};

/// Settings of GroupNorm.
struct GroupNormSettings {
  double eps = 1e-5;                   ///< added to the variance
  Channels channels = Channels::last;  ///< first: x is [B, channels, ...], as in PyTorch
  DType dtype = DType::f32;
};

/// Group normalization of x [B, ..., channels]: each group of channels of each example is normalized over its channels
/// and all other axes. arXiv:1803.08494.
struct GroupNorm {
  Var weight;           ///< [channels], ones at the start
  Var bias;             ///< [channels], zeros at the start
  std::int64_t groups;  ///< the number of groups
  double eps;           ///< added to the variance
  Channels order;       ///< of the axes of x

  /// Throws ValueError unless `groups` divides channels >= 1 and eps >= 0.
  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormSettings& settings = {});

  /// x [B, ..., channels] or, if `order` says so, [B, channels, ...] -> the shape of x.
  Var operator()(const Var& x) const { return group_norm(x, groups, weight, bias, eps, order); }

  void params(auto&& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

}  // namespace braid::nn
