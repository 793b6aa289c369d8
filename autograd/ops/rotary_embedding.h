#pragma once
#include <concepts>

#include <braid/autograd/tape.h>

namespace braid {

/// Which two of a head's D elements form pair i.
enum class RotaryLayout {
  adjacent,  ///< 2i and 2i + 1, as in the paper
  halves,    ///< i and D / 2 + i, as in Llama and Qwen
};

/// Rotary position embedding: at position t, pair i of elements turns by the angle `(offset + t) * base^(-2i / D)`, so
/// that q . k depends on the distance of their positions. The bits at a position do not depend on the offset at which x
/// begins. x [B, T, H, D] -> [B, T, H, D]. Throws ShapeError unless D is even. arXiv:2104.09864.
Var rotary_embedding(const Var& x, double base = 10000, std::int64_t offset = 0,
                     RotaryLayout layout = RotaryLayout::adjacent);
template <std::floating_point T>
Var rotary_embedding(const Var& x, double base, T offset, RotaryLayout layout = RotaryLayout::adjacent) = delete;

}  // namespace braid
