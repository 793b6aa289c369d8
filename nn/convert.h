#pragma once
#include <braid/autograd/params.h>

namespace braid::nn {

/// A copy of the module whose parameters have `dtype`: `to_dtype(model, DType::f64)` for checking gradients.
template <class M>
M to_dtype(const M& module, DType dtype) {
  M converted = module;
  for_each_param(converted, [&](const std::string&, Var& p) { p = p.value().to(dtype); });
  return converted;
}

}  // namespace braid::nn
