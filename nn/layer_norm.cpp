#include <braid/nn/layer_norm.h>

#include <braid/autograd/ops/layer_norm.h>

namespace braid::nn {

LayerNorm::LayerNorm(std::int64_t channels, const NormSettings& settings) : eps(settings.eps) {
  check_value(channels >= 1, "LayerNorm: channels must be at least 1 but is {}", channels);
  check_value(eps >= 0, "LayerNorm: eps must be at least 0 but is {}", eps);
  weight = ones({channels}, settings.dtype);
  bias = zeros({channels}, settings.dtype);
}

Var LayerNorm::operator()(const Var& x) const { return layer_norm(x, weight, bias, eps); }

}  // namespace braid::nn
