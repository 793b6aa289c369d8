#include <braid/autograd/ops/pool2d.h>

#include <limits>

#include <braid/autograd/ops/detail/window.h>
#include <braid/autograd/ops/max.h>
#include <braid/autograd/ops/pad.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/ops/transpose.h>

namespace braid {

/// `reduce` over the taps of each window, [B, U, V, taps, C], of x padded with `fill`.
static Var pool(const char* op, const Var& x, Size2d size, const WindowSettings& settings, double fill, auto reduce) {
  check_floating(op, x.dtype());
  if (settings.channels == Channels::first) {
    check_shape(x.rank() == 4, "{}: x must have shape [B, C, H, W] but has {}", op, x.shape());
    const Var last = permute(x, {0, 2, 3, 1});
    return permute(pool(op, last, size, detail::with_channels_last(settings), fill, reduce), {0, 3, 1, 2});
  }
  const detail::Window window = detail::window_over(op, x.shape(), size, settings);
  const auto& [h, w] = settings.padding;
  const Var padded = h + w == 0 ? x : pad(pad(x, 1, h, h, fill), 2, w, w, fill);
  const Var windows = unfold(padded, size, {.stride = settings.stride, .dilation = settings.dilation});
  return reduce(reshape(windows, {x.size(0), window.h.out, window.w.out, window.taps(), x.size(3)}));
}

Var max_pool2d(const Var& x, Size2d size, const WindowSettings& settings) {
  check_value(2 * settings.padding.h <= size.h && 2 * settings.padding.w <= size.w,
              "max_pool2d: the padding must be at most half the window of {} x {} but is {} and {}", size.h, size.w,
              settings.padding.h, settings.padding.w);
  const double lowest = -std::numeric_limits<double>::infinity();
  return pool("max_pool2d", x, size, settings, lowest, [](const Var& windows) { return max(windows, -2); });
}

Var mean_pool2d(const Var& x, Size2d size, const WindowSettings& settings) {
  return pool("mean_pool2d", x, size, settings, 0, [](const Var& windows) { return mean(windows, -2); });
}

}  // namespace braid
