#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// x limited to [low, high], element by element. The gradient is 0 outside and passes inside, bounds included.
/// Throws ValueError unless low <= high, and for bounds outside i32 if x is i32.
Var clamp(const Var& x, double low, double high);

}  // namespace braid
