#include <braid/autograd/ops/roll.h>

#include <algorithm>

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/core/detail/indexing.h>

namespace braid {

/// Position `first` in front.
static Tensor rotated(const Tensor& x, int axis, std::int64_t first) {
  const std::int64_t size = x.size(axis);
  Tensor y(x.shape(), x.dtype());
  detail::write_slice(y, axis, 0, x.slice(axis, first, size));
  detail::write_slice(y, axis, size - first, x.slice(axis, 0, first));
  return y;
}

Var roll(const Var& x, int axis, std::int64_t shift) {
  const std::int64_t size = std::max<std::int64_t>(1, x.shape()[x.shape().index(axis, "roll")]);
  const std::int64_t left = (shift % size + size) % size, first = (size - left) % size;
  return detail::linear_map(
      "roll", x, [axis, first](const Tensor& x) { return rotated(x, axis, first); },
      [axis, left](const Tensor& dy) { return rotated(dy, axis, left); });
}

}  // namespace braid
