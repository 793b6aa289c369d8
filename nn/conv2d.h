#pragma once
#include <braid/autograd/ops/conv2d.h>
#include <braid/nn/linear.h>

namespace braid::nn {

/// Convolution of pictures, channels last unless the settings say otherwise: x [B, H, W, in] -> [B, U, V, out]. The
/// weight is [out, in / groups, K, L]; it and the bias start from U(-b, b) with b = 1/sqrt(taps in / groups), as
/// PyTorch's.
struct Conv2d : WeightAndBias {
  Conv2dSettings settings;

  /// Throws ValueError unless in, out and both sizes are at least 1 and the groups divide `in` and `out`.
  Conv2d(std::int64_t in, std::int64_t out, Size2d size, Rng& rng, const Conv2dSettings& settings = {},
         const LinearSettings& parameters = {});

  Var operator()(const Var& x) const { return conv2d(x, weight, bias, settings); }
};

}  // namespace braid::nn
