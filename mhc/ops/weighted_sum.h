#pragma once
#include <span>

#include <braid/autograd/tape.h>

namespace braid::mhc {

/// `y = x + sum_k weights_k states_k` in one pass, as its vjp: what MHCSkip does with a history. weights [K], K states
/// of the shape of x. Throws ShapeError unless all fit. MHCSkip's reference path is its composed twin.
Var weighted_sum(const Var& x, const Var& weights, std::span<const Var> states);

}  // namespace braid::mhc
