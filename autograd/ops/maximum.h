#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The larger one of each pair of elements, with broadcasting; NaN if there is one. Where both are equal, each gets
/// half of the gradient. Throws ShapeError when shapes do not broadcast and DTypeError when dtypes differ.
Var maximum(const Var& a, const Var& b);

/// The smaller one; as maximum otherwise.
Var minimum(const Var& a, const Var& b);

}  // namespace braid
