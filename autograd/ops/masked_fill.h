#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `value` where `mask` is not zero, else x. mask broadcasts to x and has any dtype. Elements that are filled get no
/// gradient. Throws ShapeError when the mask does not broadcast to x, ValueError for a value outside i32 if x is i32.
Var masked_fill(const Var& x, const Tensor& mask, double value);

}  // namespace braid
