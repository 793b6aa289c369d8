#pragma once
#include <braid/autograd/ops/unfold.h>

namespace braid {

/// The largest element of each window and channel, without those in the padding: x [B, H, W, C] -> [B, U, V, C], sizes
/// as unfold's. Equal elements share the gradient, where PyTorch's goes to the first, as in max(). Throws as unfold()
/// does, and ValueError for a padding of more than half a window.
Var max_pool2d(const Var& x, Size2d size, const WindowSettings& settings);
/// The mean of each window and channel, zeros of the padding included, as in PyTorch: x [B, H, W, C] -> [B, U, V, C].
/// Throws as unfold() does.
Var mean_pool2d(const Var& x, Size2d size, const WindowSettings& settings);

/// Over windows side by side, as PyTorch's by default.
inline Var max_pool2d(const Var& x, Size2d size) { return max_pool2d(x, size, {.stride = size}); }
inline Var mean_pool2d(const Var& x, Size2d size) { return mean_pool2d(x, size, {.stride = size}); }

}  // namespace braid
