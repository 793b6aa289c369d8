#pragma once
#include <braid/autograd/ops/conv2d.h>
#include <braid/nn/linear.h>

namespace braid::nn {

/// Convolution of pictures, channels last unless the settings say otherwise: x [B, H, W, in] -> [B, U, V, out]. The
/// weight is [out, in / groups, K, L]; it and the bias start as PyTorch's, from U(-b, b), b = 1/sqrt(taps in / groups).
struct Conv2d : WeightAndBias {
  Conv2dSettings settings;

  /// Throws ValueError unless in, out and both sizes are at least 1 and the groups divide `in` and `out`.
  Conv2d(std::int64_t in, std::int64_t out, Size2d size, Rng& rng, const Conv2dSettings& chosen = {},
         const LinearSettings& parameters = {})
      : settings(chosen) {
    const std::int64_t groups = settings.groups;
    check_value(in >= 1 && out >= 1 && size.h >= 1 && size.w >= 1,
                "Conv2d: in, out and size must be at least 1 but are {}, {} and {} x {}", in, out, size.h, size.w);
    check_value(groups >= 1 && in % groups == 0 && out % groups == 0,
                "Conv2d: groups must divide the {} inputs and {} outputs but is {}", in, out, groups);
    draw({out, in / groups, size.h, size.w}, rng, parameters);
  }

  Var operator()(const Var& x) const { return conv2d(x, weight, bias, settings); }  ///< [B, H, W, in] -> [B, U, V, out]
};

}  // namespace braid::nn
