#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// The lower triangle of the matrices in the last two axes: x[.., i, j] where j - i <= diagonal, else 0. Throws
/// ShapeError when there are fewer axes.
Var tril(const Var& x, std::int64_t diagonal = 0);

/// The upper triangle: x[.., i, j] where j - i >= diagonal; otherwise like tril.
Var triu(const Var& x, std::int64_t diagonal = 0);

}  // namespace braid
