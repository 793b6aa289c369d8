#pragma once
#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/map_kernel.h>
#include <braid/autograd/tape.h>

namespace braid::detail {

/// The op on x with kernels forward(table) and vjp(table); the vjp reads x.
template <class Forward, class Vjp>
Var elementwise(const char* name, const Var& x, Forward forward, Vjp vjp) {
  return record(name, map_kernel(name, forward, x.value()), {x},
                [=, x = x.value()](const Tensor& dy) { return map_kernel(name, vjp, dy, x); });
}

/// The same for an op with a composed form, `compose(x)`.
template <class Forward, class Vjp, class Compose>
Var elementwise(const char* name, const Var& x, Forward forward, Vjp vjp, Compose compose) {
  check_floating(name, x.dtype());
  return Composed::active() ? in_f32(compose, x) : elementwise(name, x, forward, vjp);
}

}  // namespace braid::detail
