#include <braid/autograd/ops/conv1d.h>

#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/autograd/ops/detail/window.h>
#include <braid/autograd/ops/transpose.h>

namespace braid {

Var conv1d(const Var& x, const Var& weight, const Var& bias, const Conv1dSettings& settings) {
  if (settings.channels == Channels::first) {
    check_shape(x.rank() == 3, "conv1d: x must have shape [B, C, T] but has {}", x.shape());
    return transpose(conv1d(transpose(x), weight, bias, detail::with_channels_last(settings)));
  }
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const auto&... wide) { return conv1d(wide..., settings); }, x, weight, bias);
  detail::check_setting("conv1d", "dilation", settings.dilation, 1);  // before a product with it
  detail::check_setting("conv1d", "padding", settings.padding, 0);
  check_value(!settings.causal || settings.padding == 0, "conv1d: causal takes no other padding but it is {}",
              settings.padding);
  check_shape(x.rank() == 3, "conv1d: x must have shape [B, T, C] but has {}", x.shape());
  check_shape(weight.rank() == 3 && 1 <= weight.size(2) && weight.size(2) < std::int64_t{1} << 31,
              "conv1d: weight must have shape [out, in / groups, K] with at least one tap but has {}", weight.shape());
  const std::int64_t front = settings.causal ? settings.dilation * (weight.size(2) - 1) : settings.padding;
  const detail::Window window{
      x.size(0),
      {},
      {"conv1d", x.size(1), weight.size(2), settings.stride, settings.dilation, front, settings.causal ? 0 : front}};
  return detail::convolution("conv1d", x, weight, bias, window, settings.groups);
}

}  // namespace braid
