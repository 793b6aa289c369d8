#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Products of the matrices in the last two axes; leading axes broadcast. a [..., m, k], b [..., k, n] -> [..., m, n].
/// A vector a [k] counts as a row and a vector b [k] as a column, which the result does not have: [..., m, k] [k] ->
/// [..., m], [k] [..., k, n] -> [..., n], [k] [k] -> []. Throws ShapeError or DTypeError when they do not fit.
Var matmul(const Var& a, const Var& b);

namespace detail {
/// x as a matrix of rows, its leading axes stacked: [..., n] -> [rows, n].
auto as_rows(const auto& x) { return x.reshape({x.shape().axes(0, x.rank() - 1).numel(), x.size(-1)}); }
}  // namespace detail

}  // namespace braid
