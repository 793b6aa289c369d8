#pragma once
#include <cstdint>

#include <braid/autograd/verify/verdict.h>

namespace braid::detail {

/// The gradients of <dy, f(inputs)>, one after the other in a vector: by vjps for constants, by rules for variables on
/// a tape of higher order.
GradcheckFunction gradient_function(const GradcheckFunction& f, const Tensor& dy);

/// The largest relative error that rounding explains in check_without_steps().
inline constexpr double kToRounding = 1e-13;

/// Compares <J^T w, v> by vjps with <w, J v> by rules, for the Jacobian J of f and random v and w: no step, and no
/// kinks, since both go the way that f went. The error is relative to the terms of the two products or, if that exceeds
/// kToRounding, to what changes of last bits explain.
CheckedDerivative check_without_steps(const GradcheckFunction& f, List<Tensor> inputs, std::uint64_t seed);

}  // namespace braid::detail
