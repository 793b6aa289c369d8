#pragma once
#include <braid/autograd/ops/channels.h>
#include <braid/autograd/tape.h>

namespace braid {

/// How a convolution moves over its input.
struct Conv1dSettings {
  std::int64_t stride = 1;    ///< positions between two results
  std::int64_t dilation = 1;  ///< positions between two weights
  std::int64_t groups = 1;    ///< each output sees the input channels of its group alone
  std::int64_t padding = 0;   ///< zeros at both ends
  bool causal = false;        ///< dilation (K - 1) zeros in front alone: y[t] sees no x after position t stride
  Channels channels = Channels::last;  ///< first: x is [B, C, T] and the result [B, out, U], as in PyTorch
};

/// Convolution along a sequence, channels last unless the settings say otherwise:
/// `y[b, t, o] = bias[o] + sum over k, c of weight[o, c, k] x[b, t stride + k dilation - front, c]`, 0 outside x, where
/// c runs over the channels of o's group and `front` is the padding there. x [B, T, C], weight [out, C / groups, K] as
/// in PyTorch, bias [out], of x's dtype or f32 for bf16 -> [B, (T + all padding - dilation (K - 1) - 1) / stride + 1,
/// out]. As many groups as channels and outputs (depthwise) run as a loop over the taps, others as matrix products.
/// Throws ShapeError when shapes do not fit or the taps reach over more positions than x has with its padding,
/// DTypeError for i32 and other dtypes, ValueError for settings out of range or groups that do not divide the channels.
Var conv1d(const Var& x, const Var& weight, const Var& bias, const Conv1dSettings& settings = {});

/// The same without a bias.
inline Var conv1d(const Var& x, const Var& weight, const Conv1dSettings& settings = {}) {
  return conv1d(x, weight, Var(), settings);
}

}  // namespace braid
