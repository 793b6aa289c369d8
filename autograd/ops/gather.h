#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// One element of x for each id: `y[.., j, ..] = x[.., ids[.., j, ..], ..]` along an axis; y has the shape of ids.
/// x [.., n, ..], ids i32 [.., m, ..] with the same other sizes; negative ids count from the end. Throws ShapeError
/// or DTypeError when they do not fit, ValueError when an id is not in [-n, n).
Var gather(const Var& x, int axis, const Tensor& ids);

/// x with `src[.., j, ..]` added at `ids[.., j, ..]` along an axis; repeated ids add up, in their order.
/// x [.., n, ..], src and ids i32 [.., m, ..]. Throws as gather() does.
Var scatter_add(const Var& x, int axis, const Tensor& ids, const Var& src);

namespace detail {
/// gather(), recorded as `op`, for ids that are in [0, n).
Var record_gather(const char* op, const Var& x, int axis, const Tensor& ids);
}  // namespace detail

}  // namespace braid
