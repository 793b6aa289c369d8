#pragma once
#include <braid/mhc/streams/streams.h>

namespace braid::mhc {

/// Settings of WeightedHead.
struct WeightedHeadSettings {
  bool softmax = false;    ///< weights that sum to 1, without hc_eps, in place of the models' sigmoids
  double hc_eps = 1e-6;    ///< added to the weights
  double norm_eps = 1e-6;  ///< of the RMS norm in front of them
  DType dtype = DType::f32;
};

/// The reduction of the streams in front of the last norm of DeepSeek-V4 and Hunyuan-V4, a read by weights per
/// token:
///
///     y = sum_i (sigmoid(scale w + base) + hc_eps)_i x_i,   w = (x_flat fn^T) / sqrt(mean(x_flat^2) + norm_eps)
///
/// In checkpoints, the parameters' names begin with hc_. Initially it is the mean of the streams (to n hc_eps): fn = 0,
/// scale = 0.01.
struct WeightedHead {
  Var fn;                 ///< [n, n C]
  Var base;               ///< [n]
  Var scale;              ///< [1]
  std::int64_t channels;  ///< C, of each stream
  WeightedHeadSettings settings;

  /// Throws ValueError unless channels and streams >= 1.
  WeightedHead(std::int64_t channels, std::int64_t streams, const WeightedHeadSettings& settings = {});

  std::int64_t streams() const { return base.size(0); }  ///< their number, n

  /// x [..., n, C] -> [..., C]. A pending write, the weights and the sum are one pass. Throws
  /// ShapeError on other shapes of x.
  Var operator()(Streams x) const;
  Var operator()(const Var& x) const { return (*this)(Streams(x)); }

  void params(auto&& visit) {
    visit("fn", fn);
    visit("base", base);
    visit("scale", scale);
  }
};

}  // namespace braid::mhc
