#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// x moved into [low, high], element by element. The gradient is passed on inside, the bounds included.
/// Throws ValueError unless low <= high, and for bounds that i32 does not have if x is i32.
Var clamp(const Var& x, double low, double high);

}  // namespace braid
