#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/random.h>

namespace braid {

/// Zeroes each element with probability p and divides the others by 1 - p, so that the mean stays. Each call drops
/// other elements: it advances rng by `rng.split()`, and the gradient draws the same ones again instead of keeping
/// them. Throws ValueError unless p is in [0, 1), DTypeError for i32. JMLR 15(56).
Var dropout(const Var& x, double p, Rng& rng);

namespace detail {
/// The same for the elements that the next draw of `rng` drops.
Var drop(const Var& x, double p, const Rng& rng);
}  // namespace detail

}  // namespace braid
