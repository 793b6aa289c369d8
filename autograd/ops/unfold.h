#pragma once
#include <braid/autograd/ops/channels.h>
#include <braid/autograd/tape.h>

namespace braid {

/// A setting of both axes of a picture: `3`, or `{3, 5}` for its height and width.
struct Size2d {
  std::int64_t h, w;
  Size2d(std::int64_t both) : h(both), w(both) {}
  Size2d(std::int64_t height, std::int64_t width) : h(height), w(width) {}
};

/// How a window moves over a picture.
struct WindowSettings {
  Size2d stride = 1;                   ///< positions between two results
  Size2d dilation = 1;                 ///< positions between two taps
  Size2d padding = 0;                  ///< positions added on every side
  Channels channels = Channels::last;  ///< first: of x and of the result, as in PyTorch
};

/// The windows of `size` taps as rows, zeros in the padding: x [B, H, W, C] -> [B, U, V, taps C], taps by height, then
/// width, each with its channels; U = (H + 2 padding - dilation (size - 1) - 1) / stride + 1, and V likewise. With
/// channels first, [B, C, H, W] -> [B, C taps, U V], as PyTorch's. A stride of `size` cuts a picture into patches.
/// Throws ShapeError when x is no picture or smaller than the window, ValueError for settings out of range.
Var unfold(const Var& x, Size2d size, const WindowSettings& settings = {});

}  // namespace braid
