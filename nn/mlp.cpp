#include <braid/nn/mlp.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/gelu.h>
#include <braid/autograd/ops/relu.h>
#include <braid/autograd/ops/silu.h>

namespace braid::nn {
namespace {

std::int64_t checked_channels(std::int64_t channels, std::int64_t hidden) {
  check_value(channels >= 1 && hidden >= 1, "MLP: channels and hidden must be at least 1 but are {} and {}", channels,
              hidden);
  return channels;
}

}  // namespace

MLP::MLP(std::int64_t channels, std::int64_t hidden, Rng& rng, const MLPSettings& settings)
    : activation(settings.activation),
      up(checked_channels(channels, hidden), hidden, rng, {settings.bias, settings.dtype}),
      down(hidden, channels, rng, {settings.bias, settings.dtype}) {
  if (activation == Activation::swiglu || activation == Activation::geglu)
    gate.emplace(channels, hidden, rng, LinearSettings{settings.bias, settings.dtype});
}

Var MLP::operator()(const Var& x) const {
  switch (activation) {
    case Activation::gelu: return down(gelu(up(x)));
    case Activation::gelu_erf: return down(gelu_erf(up(x)));
    case Activation::relu: return down(relu(up(x)));
    case Activation::geglu: return down(gelu((*gate)(x)) * up(x));
    case Activation::swiglu: break;
  }
  return down(silu((*gate)(x)) * up(x));
}

}  // namespace braid::nn
