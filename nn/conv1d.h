#pragma once
#include <braid/autograd/ops/conv1d.h>
#include <braid/nn/linear.h>

namespace braid::nn {

/// Convolution along a sequence, channels last unless the settings say otherwise: x [B, T, in] -> [B, U, out];
/// `{.causal = true, .groups = in}` is the short causal filter per channel in front of linear attention and state space
/// layers. The weight is [out, in / groups, K]; it and the bias start from U(-b, b) with b = 1/sqrt(K in / groups), as
/// PyTorch's.
struct Conv1d : WeightAndBias {
  Conv1dSettings settings;

  /// Throws ValueError unless in, out and taps are at least 1 and the groups divide `in` and `out`.
  Conv1d(std::int64_t in, std::int64_t out, std::int64_t taps, Rng& rng, const Conv1dSettings& settings = {},
         const LinearSettings& parameters = {});

  Var operator()(const Var& x) const;
};

}  // namespace braid::nn
