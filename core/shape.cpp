#include <braid/core/shape.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace braid {

Shape::Shape(std::span<const std::int64_t> sizes, const char* op) {
  check_shape(sizes.size() <= kMaxRank, "{}: at most {} axes are supported but got {}", op, kMaxRank, sizes.size());
  // Without sizes of 0, so that strides and bytes fit into 63 bits, too.
  std::int64_t room = std::int64_t{1} << 59;
  for (const std::int64_t size : sizes) {
    check_shape(size >= 0, "{}: sizes must not be negative but got {}", op, size);
    room /= std::max<std::int64_t>(size, 1);
    check_shape(room > 0, "{}: [{}] has more than 2^59 elements", op, fmt::join(sizes, ", "));
  }
  rank_ = static_cast<int>(sizes.size());
  std::ranges::copy(sizes, sizes_.begin());
}

std::int64_t Shape::numel() const { return std::accumulate(begin(), end(), std::int64_t{1}, std::multiplies<>()); }

int Shape::index(int axis, const char* op, const char* argument) const {
  check_shape(-rank_ <= axis && axis < rank_, "{}: {} {} has no axis {}", op, argument, *this, axis);
  return axis < 0 ? axis + rank_ : axis;
}

Shape Shape::with(int axis, std::int64_t size) const {
  std::vector<std::int64_t> sizes(begin(), end());
  sizes[index(axis)] = size;
  return Shape(sizes);
}

Shape Shape::inserted(int axis, std::int64_t size) const {
  std::vector<std::int64_t> sizes(begin(), end());
  sizes.insert(sizes.begin() + (axis == rank_ ? axis : index(axis)), size);
  return Shape(sizes);
}

Shape Shape::without(int axis) const {
  std::vector<std::int64_t> sizes(begin(), end());
  sizes.erase(sizes.begin() + index(axis));
  return Shape(sizes);
}

Shape Shape::axes(int first, int last) const {
  check_shape(0 <= first && first <= last && last <= rank_, "Shape: {} has no axes [{}, {})", *this, first, last);
  return Shape(std::span(begin() + first, begin() + last));
}

Shape Shape::concat(const Shape& tail) const {
  std::vector<std::int64_t> sizes(begin(), end());
  sizes.insert(sizes.end(), tail.begin(), tail.end());
  return Shape(sizes);
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> sizes(rank);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.rank() ? a[-i] : 1, y = i <= b.rank() ? b[-i] : 1;
    check_shape(x == y || x == 1 || y == 1, "{}: shapes {} and {} do not broadcast", op, a, b);
    sizes[rank - i] = x == 1 ? y : x;
  }
  return Shape(sizes, op);
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

}  // namespace braid
