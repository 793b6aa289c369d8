#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/random.h>

namespace braid {

/// Zeroes each element with probability p and divides the others by 1 - p, so that the mean stays. The choice is the
/// next draw of `rng`, taken by value: the same rng drops the same elements, and the gradient draws them again instead
/// of keeping them. Pass `rng.split()` for a new choice each time. Throws ValueError unless p is in [0, 1). JMLR
/// 15(56).
Var dropout(const Var& x, double p, Rng rng);

}  // namespace braid
