#include <braid/nn/rms_norm.h>

#include <braid/autograd/ops/rms_norm.h>

namespace braid::nn {

RMSNorm::RMSNorm(std::int64_t channels, const NormSettings& settings) : eps(settings.eps) {
  check_value(channels >= 1, "RMSNorm: channels must be at least 1 but is {}", channels);
  check_value(eps >= 0, "RMSNorm: eps must be at least 0 but is {}", eps);
  weight = ones({channels}, settings.dtype);
}

Var RMSNorm::operator()(const Var& x) const { return rms_norm(x, weight, eps); }

}  // namespace braid::nn
