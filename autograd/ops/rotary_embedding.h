#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Rotary position embedding: at position t, the pair of elements (2i, 2i + 1) turns by the angle
/// `(offset + t) * base^(-2i / D)`, so that q . k depends on the distance of their positions.
/// x [B, T, H, D] -> [B, T, H, D]. Throws ShapeError unless D is even. arXiv:2104.09864.
Var rotary_embedding(const Var& x, double base = 10000, std::int64_t offset = 0);

}  // namespace braid
