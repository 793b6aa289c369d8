#pragma once
#include <braid/autograd/ops/reduction.h>
#include <braid/autograd/tape.h>

namespace braid {

/// The negative log-likelihood of independent yes or no answers whose probabilities are sigmoid(logits):
/// `-(w z log(sigmoid(x)) + (1 - z) log(1 - sigmoid(x)))` for logits x and targets z in [0, 1], precise for any x.
/// logits, targets [...] -> reduced, in f32 for logits of bf16, beside which the others may be f32. `positive_weight`
/// w, ones if not given, broadcasts to the logits: [C] for classes in the last axis. Throws ShapeError when shapes do
/// not fit, DTypeError when dtypes differ.
Var binary_cross_entropy_with_logits(const Var& logits, const Var& targets, Reduction reduction = Reduction::mean,
                                     const Tensor& positive_weight = {});

}  // namespace braid
