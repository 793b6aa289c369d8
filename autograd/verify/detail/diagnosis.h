#pragma once
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/verify/verdict.h>

namespace braid::detail {

/// f(inputs), and a sentence that says why the gradients of f cannot be checked: f changes its inputs, is not
/// deterministic, or returns NaN or Inf. It is empty when they can. Throws DTypeError unless the output of f is f64.
std::pair<Tensor, std::string> diagnose(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                                        const std::vector<std::string>& names);

/// Throws DTypeError naming `what` unless x is f64.
void check_f64(const Tensor& x, const std::string& what);

}  // namespace braid::detail
