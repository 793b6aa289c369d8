#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Causal scaled dot-product attention: `y[t] = sum over s <= t of softmax(q[t] . k[s] / sqrt(D)) v[s]` for each head.
/// q, k, v [B, T, H, D] -> [B, T, H, D]. Keeps the logsumexp of each row and recomputes the probabilities, a block at a
/// time, for the gradients. Throws ShapeError unless the shapes are equal. arXiv:1706.03762, blocks of
/// arXiv:2205.14135.
Var causal_attention(const Var& q, const Var& k, const Var& v);

}  // namespace braid
