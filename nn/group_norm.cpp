#include <braid/nn/group_norm.h>

#include <braid/autograd/ops/group_norm.h>

namespace braid::nn {

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const NormSettings& settings)
    : groups(groups), eps(settings.eps) {
  check_value(channels >= 1, "GroupNorm: channels must be at least 1 but is {}", channels);
  check_value(groups >= 1 && channels % groups == 0, "GroupNorm: groups must divide the {} channels but is {}",
              channels, groups);
  check_value(eps >= 0, "GroupNorm: eps must be at least 0 but is {}", eps);
  weight = ones({channels}, settings.dtype);
  bias = zeros({channels}, settings.dtype);
}

Var GroupNorm::operator()(const Var& x) const { return group_norm(x, groups, weight, bias, eps); }

}  // namespace braid::nn
