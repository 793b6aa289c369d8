#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Sorted elements along an axis and their former positions: `values = gather(x, axis, ids)`.
struct Sorted {
  Var values;  ///< [.., n, ..], of topk() [.., k, ..]: the elements in order
  Tensor ids;  ///< i32, shaped like the values
};

/// x in ascending or descending order along an axis. Equal elements keep their order; NaN is the largest, as in numpy
/// and PyTorch. x of any dtype [.., n, ..]. The ids get no gradient. Throws ShapeError for an axis that
/// is missing or has more than 2^31 - 1 positions.
Sorted sort(const Var& x, int axis = -1, bool descending = false);

/// The k largest elements along an axis, in descending order; equal ones in the order of their positions. x [.., n, ..]
/// -> [.., k, ..]. NaN is the largest. Throws as sort() does, and ValueError unless k is in [0, n].
Sorted topk(const Var& x, std::int64_t k, int axis = -1);

/// The ids of sort() alone, i32 in its shape: the positions in x of its elements in sorted order. Throws as sort().
Tensor argsort(const Var& x, int axis = -1, bool descending = false);

}  // namespace braid
