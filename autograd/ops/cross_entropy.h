#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Mean over the targets of `logsumexp(logits) - logits[target]`, the negative log-likelihood of a softmax.
/// logits [..., V], targets [...] of dtype i32 -> a scalar. Targets equal to `ignore_index` do not count; when none
/// counts, the loss and its gradient are zero. Throws ShapeError, DTypeError, or ValueError for a target out of range.
Var cross_entropy(const Var& logits, const Tensor& targets, std::int32_t ignore_index = -100);

}  // namespace braid
