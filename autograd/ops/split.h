#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid {

/// Views of consecutive positions of an axis, `sizes[i]` in the i-th: what concat puts together. Throws ShapeError
/// unless the sizes add up to that of the axis.
std::vector<Var> split(const Var& x, int axis, std::span<const std::int64_t> sizes);
inline std::vector<Var> split(const Var& x, int axis, std::initializer_list<std::int64_t> sizes) {
  return split(x, axis, std::span(sizes.begin(), sizes.size()));
}

/// The same in `count` parts of one size. Throws ShapeError unless the axis can be cut so, ValueError unless count > 0.
std::vector<Var> chunk(const Var& x, int axis, std::int64_t count);

}  // namespace braid
