#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// a where `mask` is not zero, else b, with broadcasting; the mask has any dtype. Elements not chosen get no gradient,
/// so that NaN among them does no harm. Throws ShapeError when shapes do not broadcast and DTypeError when the dtypes
/// of a and b differ.
Var where(const Tensor& mask, const Var& a, const Var& b);

}  // namespace braid
