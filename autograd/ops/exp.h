#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `e^x`, element by element, within an ulp. Results below the smallest normal number (2^-126 for f32, x < -87.34;
/// 2^-1022 for f64, x < -708.39) are 0, not subnormal; a subnormal x gives 1. Throws DTypeError for i32.
Var exp(const Var& x);

}  // namespace braid
