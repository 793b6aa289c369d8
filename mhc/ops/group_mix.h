#pragma once
#include <braid/autograd/tape.h>

namespace braid::mhc {

// Maps of n groups of channels, x [..., n, C], the same for all tokens: one pass each, forward and backward.

/// `y_i = scale_i x_i`: scale [n], x [..., n, C] -> [..., n, C]. Throws ShapeError or DTypeError unless scale fits x.
Var scale_groups(const Var& scale, const Var& x);

/// `y_i = sum_j mixing_ij x_j + scale_i f_i`: mixing [n, n], scale [n], x and f [..., n, C] -> [..., n, C].
/// Throws ShapeError or DTypeError unless all fit x.
Var mix_groups(const Var& mixing, const Var& scale, const Var& x, const Var& f);

}  // namespace braid::mhc
