#include <braid/autograd/ops/repeat.h>

#include <array>
#include <vector>

#include <fmt/ranges.h>

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

/// [before, count, after]: the numbers of elements of `shape` before an axis, of copies, and of elements from it on.
Shape copies(const Shape& shape, int axis, std::int64_t count) {
  return {shape.axes(0, axis).numel(), count, shape.axes(axis, shape.rank()).numel()};
}

/// Axis by axis, the last one first, so that only the last copy is of full size.
Tensor repeated(Tensor x, const std::vector<std::int64_t>& counts) {
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    const std::int64_t count = counts[axis];
    if (count == 1) continue;
    const Shape shape = x.shape().with(axis, x.size(axis) * count);
    x = x.reshape(copies(x.shape(), axis, 1)).broadcast_to(copies(x.shape(), axis, count)).reshape(shape);
  }
  return x;
}

/// dx = the sum of dy over the copies
Tensor sum_of_copies(Tensor dy, const std::vector<std::int64_t>& counts, const Shape& x) {
  if (dy.numel() == 0) return zeros(x, dy.dtype());
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t count = counts[axis];
    if (count == 1) continue;
    const Shape shape = dy.shape().with(axis, x[axis]);
    dy = reduce_sum(dy.reshape(copies(shape, axis, count)), 1).reshape(shape);
  }
  return dy;
}

}  // namespace

Var repeat(const Var& x, List<std::int64_t> given) {
  const std::vector<std::int64_t> counts(given.begin(), given.end());
  check_shape(std::ssize(counts) == x.rank(), "repeat: x {} needs a count for each axis but got [{}]", x.shape(),
              fmt::join(counts, ", "));
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < x.rank(); ++axis)  // Shape checks that they can be multiplied
    sizes.push_back(Shape(std::array{counts[axis], x.size(axis)}, "repeat").numel());
  const Shape shape(sizes, "repeat");
  return detail::linear_map(
      "repeat", x, [=](const Tensor& x) { return shape.numel() == 0 ? Tensor(shape, x.dtype()) : repeated(x, counts); },
      [counts, shape = x.shape()](const Tensor& dy) { return sum_of_copies(dy, counts, shape); });
}

}  // namespace braid
