#pragma once
#include <cstdint>
#include <utility>

#include <braid/autograd/verify/verdict.h>

namespace braid::detail {

/// The gradients of <dy, f(inputs)> as one vector: by vjps for constants, by rules for variables of higher order.
GradcheckFunction gradient_function(const GradcheckFunction& f, const Tensor& dy);

/// Compares <J^T w, v> by vjps with <w, J v> by rules, for the Jacobian J of f and random v and w: no step, and no
/// kinks, since both go the way that f went. And the tolerance: 1e-13 of the terms, or what rounding explains.
std::pair<CheckedDerivative, double> check_without_steps(const GradcheckFunction& f, List<Tensor> inputs,
                                                         std::uint64_t seed);

}  // namespace braid::detail
