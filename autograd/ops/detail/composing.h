#pragma once
// Parts of composed forms.
#include <cmath>

#include <braid/autograd/composed.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/autograd/ops/exp.h>
#include <braid/autograd/ops/log.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/sqrt.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/ops/where.h>
#include <braid/core/map.h>
#include <braid/core/reduce.h>

namespace braid::detail {

/// The largest element along axes, which keep size 1, to shift exponents by. 0 where it is not finite.
inline Tensor largest(const Tensor& x, const Axes& axes) {
  if (x.numel() == 0) return zeros(reduced_shape("max", x.shape(), axes, true), x.dtype());
  auto finite = [](auto m) { return std::isfinite(m) ? m : decltype(m){0}; };
  return map("max", finite, reduce_max(x, axes, true));
}

/// The square root, whose gradient at 0 is 0.
inline Var root(const Var& x) { return where(x.value(), sqrt(where(x.value(), x, 1.0)), 0.0); }

}  // namespace braid::detail
