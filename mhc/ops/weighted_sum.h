#pragma once
#include <span>

#include <braid/autograd/tape.h>

namespace braid::mhc {

/// `y = x + sum_k weights_k states_k`, the mixture of MHCSkip, in one pass forward and one backward. weights [K], f32
/// for x of bf16, K states of the shape of x. Throws ShapeError or DTypeError unless all fit.
Var weighted_sum(const Var& x, const Var& weights, std::span<const Var> states);

}  // namespace braid::mhc
