#pragma once
#include <braid/autograd/ops/conv1d.h>
#include <braid/nn/linear.h>

namespace braid::nn {

/// Convolution along a sequence, channels last unless the settings say otherwise: x [B, T, in] -> [B, U, out];
/// `{.groups = in, .causal = true}` is the short causal filter per channel in front of linear attention and state space
/// layers. The weight is [out, in / groups, K]; it and the bias start from U(-b, b) with b = 1/sqrt(K in / groups), as
/// PyTorch's.
struct Conv1d : WeightAndBias {
  Conv1dSettings settings;

  /// Throws ValueError unless in, out and taps are at least 1 and the groups divide `in` and `out`.
  Conv1d(std::int64_t in, std::int64_t out, std::int64_t taps, Rng& rng, const Conv1dSettings& chosen = {},
         const LinearSettings& parameters = {})
      : settings(chosen) {
    const std::int64_t groups = settings.groups;
    check_value(in >= 1 && out >= 1 && taps >= 1, "Conv1d: in, out and taps must be at least 1 but are {}, {} and {}",
                in, out, taps);
    check_value(groups >= 1 && in % groups == 0 && out % groups == 0,
                "Conv1d: groups must divide the {} inputs and {} outputs but is {}", in, out, groups);
    draw({out, in / groups, taps}, rng, parameters);
  }

  Var operator()(const Var& x) const { return conv1d(x, weight, bias, settings); }  ///< x [B, T, in] -> [B, U, out]
};

}  // namespace braid::nn
