#pragma once
#include <span>
#include <vector>

#include <braid/autograd/params.h>

namespace braid::nn {

/// The Euclidean norm of all elements of `grads`, f32 or f64, of any shapes. Sums fixed blocks in f64, added in order.
double global_norm(std::span<const Tensor* const> grads);

/// Multiplies each tensor, f32 or f64, of any shape, by `factor`, in place unless its storage is shared.
void scale_in_place(std::span<Tensor* const> grads, double factor);

/// Multiplies a module of gradients by `factor`, in place.
void scale_grads(auto& grads, double factor) {
  std::vector<Tensor*> tensors;
  for_each_param(grads, [&](const std::string&, Var& grad) { tensors.push_back(&grad.mutable_value()); });
  scale_in_place(tensors, factor);
}

/// The norm of gradients, and the factor that clips them.
struct Clipping {
  double norm, factor;  ///< the norm of all elements together; at most 1
};

/// The norm and factor of clip_grad_norm, for an optimizer that scales `grads` while it reads them:
///
///     const auto [norm, factor] = nn::clipping(grads, 1.0);
///     optimizer.step(model, grads, factor);
///
/// Throws ValueError unless max_norm > 0.
Clipping clipping(const auto& grads, double max_norm) {
  check_value(max_norm > 0, "clip_grad_norm: max_norm must be positive but is {}", max_norm);
  std::vector<const Tensor*> tensors;
  for_each_param(grads, [&](const std::string&, const Var& grad) { tensors.push_back(&grad.value()); });
  const double norm = global_norm(tensors), factor = max_norm / (norm + 1e-6);
  return {norm, factor < 1 ? factor : 1};
}

/// Scales `grads` (a module of gradients) in place by min(1, max_norm / (norm + 1e-6)), as PyTorch does, and returns
/// the norm before that. A norm of NaN scales nothing. Throws ValueError unless max_norm > 0.
double clip_grad_norm(auto& grads, double max_norm) {
  const auto [norm, factor] = clipping(grads, max_norm);
  if (factor < 1) scale_grads(grads, factor);
  return norm;
}

}  // namespace braid::nn
