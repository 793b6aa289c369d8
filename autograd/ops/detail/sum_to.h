#pragma once
#include <braid/autograd/tape.h>

namespace braid::detail {

/// x summed over the axes along which `shape` was broadcast to its shape, the transpose of broadcast_to; x itself if it
/// has that shape.
Var sum_to(const Var& x, const Shape& shape);

}  // namespace braid::detail
