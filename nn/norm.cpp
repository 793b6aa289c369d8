#include <braid/nn/norm.h>

#include <braid/autograd/ops/layer_norm.h>
#include <braid/autograd/ops/rms_norm.h>

namespace braid::nn {

Var Norm::operator()(const Var& x) const {
  return kind() == NormKind::rms ? rms_norm(x, weight, eps) : layer_norm(x, weight, bias, eps);
}

}  // namespace braid::nn
