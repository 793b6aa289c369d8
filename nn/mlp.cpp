#include <braid/nn/mlp.h>

#include <cmath>

#include <braid/autograd/ops.h>

namespace braid::nn {

static std::int64_t checked_channels(std::int64_t channels, std::int64_t hidden) {
  check_value(channels >= 1 && hidden >= 1, "MLP: channels and hidden must be at least 1 but are {} and {}", channels,
              hidden);
  return channels;
}

MLP::MLP(std::int64_t channels, std::int64_t hidden, Rng& rng, const MLPSettings& settings)
    : activation(settings.activation),
      limit(settings.limit),
      up(checked_channels(channels, hidden), hidden, rng, {settings.bias, settings.dtype}),
      down(hidden, channels, rng, {settings.bias, settings.dtype}) {
  if (activation == Activation::swiglu || activation == Activation::geglu)
    gate.emplace(channels, hidden, rng, LinearSettings{settings.bias, settings.dtype});
  check_value(limit == 0 || (limit > 0 && gate), "MLP: limit must be positive and needs a gate but is {}", limit);
}

Var MLP::operator()(const Var& x) const {
  switch (activation) {
    case Activation::gelu: return down(gelu(up(x)));
    case Activation::gelu_erf: return down(gelu_erf(up(x)));
    case Activation::relu: return down(relu(up(x)));
    case Activation::geglu:
    case Activation::swiglu: break;
  }
  const auto limited = [&](const Var& y, double low) { return limit > 0 ? clamp(y, low, limit) : y; };
  const Var opened = limited((*gate)(x), -INFINITY);
  return down((activation == Activation::geglu ? gelu(opened) : silu(opened)) * limited(up(x), -limit));
}

}  // namespace braid::nn
