#pragma once
#include <braid/autograd/ops/reduction.h>
#include <braid/autograd/tape.h>

namespace braid {

/// The Kullback-Leibler divergence of distributions from targets, `p (log(p) - log_q)` for each element, 0 where p is
/// 0: `kl_divergence(log_softmax(logits), probabilities)`, as PyTorch's kl_div, whose default reduction is the mean.
/// log_probabilities and targets p [B, ...] -> reduced, in f32 for bf16, where p may be f32; batch_mean is the
/// divergence itself, where the first axis counts distributions. The gradient of the targets is that of p log(p),
/// -infinity at 0. Throws ShapeError unless the shapes are equal, DTypeError unless the dtypes are.
Var kl_divergence(const Var& log_probabilities, const Var& targets, Reduction reduction = Reduction::batch_mean);

}  // namespace braid
