#pragma once
#include <concepts>

#include <braid/autograd/ops/reduction.h>
#include <braid/autograd/tape.h>

namespace braid {

/// Options of cross_entropy().
struct CrossEntropySettings {
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;        ///< the share of each target that is spread evenly over all classes
  Tensor class_weights = {};         ///< [V], of the dtype of the logits, or f32 for bf16; ones if not given
  std::int32_t ignore_index = -100;  ///< targets with this value are ignored
};

/// The negative log-likelihood of a softmax, with PyTorch's meaning of all settings; classes are the last axis, not
/// axis 1. logits [..., V] -> reduced from [...], in f32 for bf16. Targets are either
/// - classes, i32 [...]: the loss is `w[target] (logsumexp(logits) - logits[target])` with class weights w. The mean
///   divides by the sum of the weights of the targets that are not ignored; when all are, it and its gradient are zero.
/// - or probabilities p [..., V], of the logits' dtype or f32 for bf16, also on a tape: `sum(w p (logsumexp(logits) -
///   logits))`, where p = 0 gives 0. The mean divides by the number of rows, and ignore_index has no effect.
/// Throws ShapeError or DTypeError when they do not fit, ValueError for a class or a smoothing outside of its range.
Var cross_entropy(const Var& logits, const Var& targets, const CrossEntropySettings& settings = {});

/// The mean over classes that are not `ignore_index`.
inline Var cross_entropy(const Var& logits, const Var& targets, std::int32_t ignore_index) {
  return cross_entropy(logits, targets, CrossEntropySettings{.ignore_index = ignore_index});
}
template <std::floating_point T>  // {.label_smoothing = 0.1}
Var cross_entropy(const Var& logits, const Var& targets, T label_smoothing) = delete;

}  // namespace braid
