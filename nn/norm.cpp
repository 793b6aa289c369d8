#include <braid/nn/norm.h>

#include <braid/autograd/ops.h>
#include <braid/nn/init.h>

namespace braid::nn {

/// The weights at the start, all `first`.
static Tensor checked_weights(const char* norm, std::int64_t channels, const auto& settings, double first = 1) {
  check_value(channels >= 1, "{}: channels must be at least 1 but is {}", norm, channels);
  check_value(settings.eps >= 0, "{}: eps must be at least 0 but is {}", norm, settings.eps);
  return init::constant({channels}, first, settings.dtype);
}

Norm::Norm(NormKind kind, std::int64_t channels, const NormSettings& settings)
    : weight(checked_weights(kind == NormKind::rms ? "RMSNorm" : "LayerNorm", channels, settings, 1 - settings.offset)),
      eps(settings.eps),
      offset(settings.offset),
      kind_(kind) {
  if (kind == NormKind::layer) bias = init::constant({channels}, 0, settings.dtype);
}

Var Norm::operator()(const Var& x) const {
  const Var factors = offset == 0 ? weight : weight + offset;
  return kind_ == NormKind::rms ? rms_norm(x, factors, eps) : layer_norm(x, factors, bias, eps);
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormSettings& settings)
    : weight(checked_weights("GroupNorm", channels, settings)),
      bias(zeros({channels}, settings.dtype)),
      groups(groups),
      eps(settings.eps),
      order(settings.channels) {
  check_value(groups >= 1 && channels % groups == 0, "GroupNorm: groups must divide the {} channels but is {}",
              channels, groups);
}

}  // namespace braid::nn
