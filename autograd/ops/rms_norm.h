#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Root mean square normalization over the last axis: `y = x / sqrt(mean(x^2) + eps) * weight`.
/// x [..., C] of floats, weight [C] of x's dtype or f32 for bf16 -> [..., C]. Throws ShapeError or DTypeError unless
/// they match. arXiv:1910.07467.
Var rms_norm(const Var& x, const Var& weight, double eps = 1e-5);

/// The same without a weight.
Var rms_norm(const Var& x, double eps = 1e-5);

}  // namespace braid
