#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/reduce.h>

namespace braid {

/// A view with two axes exchanged. Throws ShapeError for a missing axis.
inline Var transpose(const Var& x, int axis_a = -2, int axis_b = -1) { return x.transpose(axis_a, axis_b); }

/// A view whose axis i is axis `axes[i]` of x. Throws ShapeError unless each axis is given once.
inline Var permute(const Var& x, const Axes& axes) { return x.permute(axes); }

}  // namespace braid
