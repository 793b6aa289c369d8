#pragma once
#include <concepts>

#include <braid/autograd/tape.h>

namespace braid {

/// x with `before` and `after` positions added at the ends of an axis, filled with `value`. Throws ShapeError for a
/// missing axis, ValueError for negative counts and for a value that i32 does not have if x is i32.
Var pad(const Var& x, int axis, std::int64_t before, std::int64_t after, double value = 0);
template <std::floating_point T>
Var pad(const Var& x, int axis, std::int64_t before, T after, double value = 0) = delete;

}  // namespace braid
