#pragma once
#include <braid/nn/saving.h>

namespace braid::nn {

/// A copy of the module whose parameters and floating-point buffers have `dtype`, such as f64 for checking gradients.
template <class M>
M to_dtype(const M& module, DType dtype) {
  M converted = module;
  for (const auto& [_, tensor] : detail::saved_tensors(converted))
    if (tensor->defined() && tensor->dtype() != DType::i32) *tensor = tensor->to(dtype);
  return converted;
}

}  // namespace braid::nn
