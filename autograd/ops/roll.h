#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The positions of an axis moved by `shift`, those that leave it at one end coming in at the other:
/// `y[.., (i + shift) mod n, ..] = x[.., i, ..]`. Throws ShapeError when there is no such axis.
Var roll(const Var& x, int axis, std::int64_t shift);

}  // namespace braid
