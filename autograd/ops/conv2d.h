#pragma once
#include <braid/autograd/ops/unfold.h>

namespace braid {

/// How a convolution moves over a picture.
struct Conv2dSettings {
  Size2d stride = 1;                   ///< positions between two results
  Size2d dilation = 1;                 ///< positions between two weights
  Size2d padding = 0;                  ///< zeros on every side
  std::int64_t groups = 1;             ///< each output sees the input channels of its group alone
  Channels channels = Channels::last;  ///< first: x is [B, C, H, W] and the result [B, out, U, V], as in PyTorch
};

/// Convolution of pictures, channels last unless the settings say otherwise:
/// `y[b, u, v, o] = bias[o] + sum over i, j, c of weight[o, c, i, j] x[b, u stride + i dilation - padding, v .. j ..,
/// c]`, 0 outside x, where c runs over the channels of o's group. x [B, H, W, C], weight [out, C / groups, K, L] as in
/// PyTorch, bias [out], of x's dtype or f32 for bf16 -> [B, U, V, out] with U = (H + 2 padding - dilation (K - 1) - 1)
/// / stride + 1, and V likewise. As many groups as channels and outputs (depthwise) run as a loop over the taps, others
/// as matrix products over windows that are laid out in cache. Throws ShapeError when shapes do not fit or the taps
/// reach over more positions than x has with its padding, DTypeError for i32 and other dtypes, ValueError for settings
/// out of range or groups that do not divide the channels.
Var conv2d(const Var& x, const Var& weight, const Var& bias, const Conv2dSettings& settings = {});

/// The same without a bias.
inline Var conv2d(const Var& x, const Var& weight, const Conv2dSettings& settings = {}) {
  return conv2d(x, weight, Var(), settings);
}

}  // namespace braid
