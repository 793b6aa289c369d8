#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Rows of a table: `y[..., c] = weight[ids[...], c]`. weight [V, C], ids [...] i32 -> [..., C].
/// Its vjp adds the cotangents of equal ids in their order in ids. Throws ShapeError unless weight has two
/// axes, DTypeError unless ids are i32, ValueError naming the first id that is not in [0, V).
Var embedding(const Var& weight, const Tensor& ids);

}  // namespace braid
