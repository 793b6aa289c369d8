#include <braid/autograd/ops/conv2d.h>

#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/autograd/ops/detail/window.h>
#include <braid/autograd/ops/transpose.h>

namespace braid {

Var conv2d(const Var& x, const Var& weight, const Var& bias, const Conv2dSettings& settings) {
  if (settings.channels == Channels::first) {
    check_shape(x.rank() == 4, "conv2d: x must have shape [B, C, H, W] but has {}", x.shape());
    const Var last = permute(x, {0, 2, 3, 1});
    return permute(conv2d(last, weight, bias, detail::with_channels_last(settings)), {0, 3, 1, 2});
  }
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const auto&... wide) { return conv2d(wide..., settings); }, x, weight, bias);
  check_shape(weight.rank() == 4, "conv2d: weight must have shape [out, in / groups, K, L] but has {}", weight.shape());
  const detail::Window window =
      detail::window_over("conv2d", x.shape(), {weight.size(2), weight.size(3)},
                          {.stride = settings.stride, .dilation = settings.dilation, .padding = settings.padding});
  return detail::convolution("conv2d", x, weight, bias, window, settings.groups);
}

}  // namespace braid
