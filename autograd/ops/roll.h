#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The positions of an axis shifted cyclically:
/// `y[.., (i + shift) mod n, ..] = x[.., i, ..]`. Throws ShapeError for a missing axis.
Var roll(const Var& x, int axis, std::int64_t shift);

}  // namespace braid
