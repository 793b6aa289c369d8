#pragma once
#include <string>
#include <vector>

#include <braid/autograd/verify/verdict.h>

// Checks of rules, by which derivatives of higher order are taken.

namespace braid::detail {

/// The gradients of <dy, f(inputs)>, one after the other in a vector: by vjps for constants, by rules for variables on a
/// tape of higher order.
GradcheckFunction gradient_function(const GradcheckFunction& f, const Tensor& dy);

/// Compares <w, J v> by rules with <J^T w, v> by vjps, for the Jacobian J of f and random v and w; `where` says so.
/// Exact but for rounding: no step, no kinks.
CheckedDerivative check_without_steps(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                                      std::uint64_t seed);

/// A sentence that names the op whose rule makes second derivatives of f wrong: with another value than its vjp, or with
/// other derivatives than differences of its vjp. f runs with every op isolated from the others, as in blame().
std::string blame_rules(const GradcheckFunction& f, const std::vector<Tensor>& inputs, double tolerance,
                        std::uint64_t seed);

}  // namespace braid::detail
