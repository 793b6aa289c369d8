#pragma once
#include <braid/autograd/ops/window_settings.h>
#include <braid/autograd/tape.h>

namespace braid {

/// The windows of `size` taps as rows, zeros in the padding: x [B, H, W, C] -> [B, U, V, taps C], taps by height, then
/// width, each with its channels; U = (H + 2 padding - dilation (size - 1) - 1) / stride + 1, and V likewise. With
/// channels first, [B, C, H, W] -> [B, C taps, U V], as PyTorch's. A stride of `size` cuts a picture into patches.
/// Throws ShapeError unless x is a picture that holds the window, DTypeError for i32, ValueError for bad settings.
Var unfold(const Var& x, Size2d size, const WindowSettings& settings = {});

}  // namespace braid
