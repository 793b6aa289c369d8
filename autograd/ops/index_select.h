#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The positions `ids` of an axis, in that order, repeats allowed; negative ones count from the end.
/// x [.., n, ..], ids i32 [m] -> [.., m, ..]. Throws ShapeError or DTypeError when they do not fit,
/// ValueError when an id is not in [-n, n).
Var index_select(const Var& x, int axis, const Tensor& ids);

}  // namespace braid
