#pragma once
#include <string>
#include <vector>

#include <braid/autograd/verify/gradcheck.h>

namespace braid::detail {

struct Diagnosis {
  Tensor y = {};              ///< f(inputs)
  std::string sentence = {};  ///< why no gradient of f can be checked; empty when it can
};

/// Whether f changes its inputs, is not deterministic, or returns what is not finite. Throws DTypeError unless its
/// output is f64.
Diagnosis diagnose(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                   const std::vector<std::string>& names);

/// Throws DTypeError naming `what`.
void check_f64(const Tensor& x, const std::string& what);

}  // namespace braid::detail
