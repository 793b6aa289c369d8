#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The linear recurrence along an axis, `h[.., i, ..] = a[.., i, ..] h[.., i - 1, ..] + b[.., i, ..]`, with zeros
/// before the first: the state of a diagonal state-space layer or a gated linear unit. a and b broadcast, and a may be
/// f32 beside bf16; ones for `a` give cumsum(). To start from a state h0, add `a[0] h0` to b[0]. One pass over memory;
/// its vjp is the same recurrence from the back. Throws ShapeError for a missing axis and shapes that do not broadcast,
/// DTypeError for i32 and for dtypes that differ. arXiv:2312.00752.
Var linear_scan(const Var& a, const Var& b, int axis);

}  // namespace braid
