#pragma once
#include <concepts>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid {

/// Which two of a head's D elements form pair i.
enum class RotaryLayout {
  adjacent,  ///< 2i and 2i + 1, as in the paper
  halves,    ///< i and D / 2 + i, as in Llama and Qwen
};

/// The turns of a head's pairs: pair i turns by `frequencies[i]` radians per position.
struct RotaryTurns {
  std::vector<double> frequencies;               ///< of P pairs; the other D - 2P elements of a head stay as they are
  RotaryLayout layout = RotaryLayout::adjacent;  ///< of the 2P elements
  bool trailing = false;  ///< whether these are the last of the head, as in DeepSeek-V4, instead of the first
  double magnitude = 1;   ///< factor of these elements, as YaRN's (arXiv:2309.00071)
};

/// The frequencies of the paper, base^(-i / pairs). Throws ValueError unless base > 0.
std::vector<double> rotary_frequencies(std::int64_t pairs, double base = 10000);

/// Rotary position embedding: at position t, pair i of elements turns by the angle `(offset + t) * base^(-2i / D)`, so
/// that q . k depends on the distance of their positions. The bits at a position do not depend on the offset at which x
/// begins. x [B, T, H, D] -> [B, T, H, D]. Throws ShapeError unless D is even, DTypeError for i32, ValueError unless
/// base > 0. arXiv:2104.09864.
Var rotary_embedding(const Var& x, double base = 10000, std::int64_t offset = 0,
                     RotaryLayout layout = RotaryLayout::adjacent);
template <std::floating_point T>
Var rotary_embedding(const Var& x, double base, T offset, RotaryLayout layout = RotaryLayout::adjacent) = delete;

/// The same with other turns. Throws ShapeError unless D >= 2P.
Var rotary_embedding(const Var& x, const RotaryTurns& turns, std::int64_t offset = 0);

}  // namespace braid
