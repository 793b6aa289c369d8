#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `y = x weight^T + bias`, the bias added inside the product; without one, `x weight^T`. x [..., in], weight [out,
/// in], bias [out], each of x's dtype or f32 for bf16 -> [..., out]. Throws ShapeError or DTypeError unless they fit.
Var linear(const Var& x, const Var& weight, const Var& bias = {});

}  // namespace braid
