#include <braid/autograd/ops/unfold.h>

#include <braid/autograd/ops/cast.h>
#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/autograd/ops/detail/window.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/transpose.h>

namespace braid {
namespace {

using detail::Way, detail::Window;

/// x [B, H, W, C] -> [B U V, taps C]
Tensor columns(const Window& window, const Tensor& x) {
  const std::int64_t channels = x.size(3);
  Tensor y({window.rows(Way::reads), window.taps() * channels}, x.dtype());
  dispatch_float("unfold", x.dtype(), [&]<class T>(T) {
    const Tensor rows = x.contiguous();
    const T* from = rows.data<T>();
    T* to = y.mutable_data<T>();
    detail::for_each_tap(window, Way::reads, window.taps() * channels, [=](auto row, auto other, auto k) {
      T* tap = to + (row * window.taps() + k) * channels;
      if (other < 0)
        std::fill_n(tap, channels, T{});
      else
        std::copy_n(from + other * channels, channels, tap);
    });
  });
  return y;
}

/// The vjp of columns: each position has the sum over the taps that read it.
Tensor columns_vjp(const Window& window, const Tensor& dy) {
  const std::int64_t channels = dy.size(1) / window.taps();
  Tensor dx = zeros({window.batch, window.h.in, window.w.in, channels}, dy.dtype());
  dispatch_float("unfold", dx.dtype(), [&]<class T>(T) {
    const Tensor rows = dy.contiguous();
    const T* from = rows.data<T>();
    T* to = dx.mutable_data<T>();
    detail::for_each_tap(window, Way::readers, channels, [=](auto row, auto other, auto k) {
      for (std::int64_t c = 0; other >= 0 && c < channels; ++c)
        to[row * channels + c] += from[(other * window.taps() + k) * channels + c];
    });
  });
  return dx;
}

}  // namespace

Var detail::unfold(const Var& x, const Window& window) {
  if (x.dtype() == DType::bf16) return cast(unfold(cast(x, DType::f32), window), DType::bf16);
  return linear_map(
      "unfold", x, [window](const Tensor& t) { return columns(window, t); },
      [window](const Tensor& dy) { return columns_vjp(window, dy); });
}

Var unfold(const Var& x, Size2d size, const WindowSettings& settings) {
  if (settings.channels == Channels::first) {
    check_shape(x.rank() == 4, "unfold: x must have shape [B, C, H, W] but has {}", x.shape());
    const Var y = unfold(permute(x, {0, 2, 3, 1}), size, detail::with_channels_last(settings));
    const std::int64_t positions = y.size(1) * y.size(2), channels = x.size(1);
    const Var taps = reshape(y, {y.size(0), positions, size.h * size.w, channels});
    return reshape(permute(taps, {0, 3, 2, 1}), {y.size(0), channels * size.h * size.w, positions});
  }
  const detail::Window window = detail::window_over("unfold", x.shape(), size, settings);
  return reshape(detail::unfold(x, window), {x.size(0), window.h.out, window.w.out, window.taps() * x.size(3)});
}

}  // namespace braid
