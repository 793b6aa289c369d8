#pragma once
#include <vector>

#include <braid/autograd/tape.h>

namespace braid {

/// Views of consecutive positions of an axis, `sizes[i]` positions in the i-th: the inverse of concat. Throws
/// ShapeError unless the sizes add up to that of the axis.
std::vector<Var> split(const Var& x, int axis, List<std::int64_t> sizes);

/// Splits an axis into `count` parts of equal size. Throws ShapeError unless `count` divides its size, ValueError
/// unless count > 0.
std::vector<Var> chunk(const Var& x, int axis, std::int64_t count);

/// `select(x, axis, i)` for every position i of an axis: the inverse of stack. Throws ShapeError for a missing axis.
std::vector<Var> unbind(const Var& x, int axis = 0);

}  // namespace braid
