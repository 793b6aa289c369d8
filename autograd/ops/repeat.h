#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// x `counts[i]` times, one copy after the other, along each axis i: numpy's tile and PyTorch's repeat, not numpy's
/// repeat. `repeat(x, {2, 1})` of [a, b] is [a, b, a, b] for rows a, b. Throws ShapeError unless there is a count for
/// each axis and none is negative.
Var repeat(const Var& x, List<std::int64_t> counts);

}  // namespace braid
