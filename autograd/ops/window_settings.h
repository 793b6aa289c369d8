#pragma once
#include <cstdint>

#include <braid/autograd/ops/channels.h>

namespace braid {

/// A setting of both axes of a picture: `3`, or `{3, 5}` for its height and width.
struct Size2d {
  std::int64_t h, w;                               ///< height, width
  Size2d(std::int64_t both) : h(both), w(both) {}  ///< both alike
  Size2d(std::int64_t height, std::int64_t width) : h(height), w(width) {}
};

/// How a window moves over a picture.
struct WindowSettings {
  Size2d stride = 1;                   ///< positions between two results
  Size2d dilation = 1;                 ///< positions between two taps
  Size2d padding = 0;                  ///< positions added on every side
  Channels channels = Channels::last;  ///< first: of x and of the result, as in PyTorch
};

}  // namespace braid
