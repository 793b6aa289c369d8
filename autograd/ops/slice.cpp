#include <braid/autograd/ops/slice.h>

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/core/detail/indexing.h>

namespace braid {
namespace {

/// The cotangent of x, given that of every `step`-th of its positions from `first` on.
Tensor padded(const Tensor& dy, const Shape& x, int axis, std::int64_t first, std::int64_t step = 1) {
  Tensor dx = zeros(x, dy.dtype());
  detail::write_slice(dx, axis, first, dy, step);
  return dx;
}

/// `position` counted from the front.
std::int64_t from_front(const Shape& x, int axis, std::int64_t position) {
  return position < 0 ? position + x[axis] : position;
}

}  // namespace

Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  return detail::linear_map(
      "slice", x, [=](const Tensor& x) { return x.slice(axis, begin, end, step); },
      [shape = x.shape(), axis, begin, step](const Tensor& dy) {
        return padded(dy, shape, axis, from_front(shape, axis, begin), step);
      });
}

Var select(const Var& x, int axis, std::int64_t position) {
  return detail::linear_map(
      "select", x, [=](const Tensor& x) { return x.select(axis, position); },
      [shape = x.shape(), axis, position](const Tensor& dy) {
        const int first_axis = shape.index(axis);
        return padded(dy.expand_dims(first_axis), shape, first_axis, from_front(shape, axis, position));
      });
}

Var Var::slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step) const {
  return braid::slice(*this, axis, begin, end, step);
}

Var Var::select(int axis, std::int64_t position) const { return braid::select(*this, axis, position); }

Var Var::operator[](std::int64_t position) const { return select(0, position); }

}  // namespace braid
