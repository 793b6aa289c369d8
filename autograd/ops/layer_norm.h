#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Layer normalization over the last axis: `y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias`.
/// x [..., C] of floats, weight [C], bias [C], both of x's dtype or f32 for bf16 -> [..., C]. Throws ShapeError or
/// DTypeError unless they match. arXiv:1607.06450.
Var layer_norm(const Var& x, const Var& weight, const Var& bias, double eps = 1e-5);

/// The same without weight and bias.
Var layer_norm(const Var& x, double eps = 1e-5);

}  // namespace braid
