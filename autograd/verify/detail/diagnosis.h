#pragma once
#include <string>
#include <vector>

#include <braid/autograd/verify/verdict.h>

namespace braid::detail {

/// Whether a function can be gradchecked.
struct Diagnosis {
  Tensor y = {};              ///< f(inputs)
  std::string sentence = {};  ///< why the gradients of f cannot be checked; empty when they can
};

/// Finds out whether f changes its inputs, is not deterministic, or returns NaN or Inf. Throws DTypeError unless its
/// output is f64.
Diagnosis diagnose(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                   const std::vector<std::string>& names);

/// Throws DTypeError naming `what` unless x is f64.
void check_f64(const Tensor& x, const std::string& what);

}  // namespace braid::detail
