#include <braid/autograd/ops/softplus.h>

#include <braid/autograd/ops/abs.h>
#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/elementwise.h>
#include <braid/autograd/ops/log1p.h>
#include <braid/autograd/ops/maximum.h>
#include <braid/autograd/ops/sigmoid.h>

namespace braid {

Var softplus(const Var& x) {
  return detail::elementwise(
      "softplus", x, [](const auto& of) { return of.softplus; },
      [](const Var& v) { return maximum(v, 0.0) + log1p(exp(-abs(v))); }, sigmoid);
}

}  // namespace braid
