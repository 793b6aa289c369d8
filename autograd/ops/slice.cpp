#include <braid/autograd/ops/slice.h>

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
std::int64_t from_front(const Var& x, int axis, std::int64_t position) {
  return position < 0 ? position + x.size(axis) : position;
}

}  // namespace

Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  Tensor y = x.value().slice(axis, begin, end, step);
  return record("slice", std::move(y), {x},
                [shape = x.shape(), axis, first = from_front(x, axis, begin), step](const Tensor& dy) {
                  return padded(dy, shape, axis, first, step);
                });
}

Var select(const Var& x, int axis, std::int64_t position) {
  Tensor y = x.value().select(axis, position);
  return record("select", std::move(y), {x},
                [shape = x.shape(), axis = x.shape().index(axis), first = from_front(x, axis, position)](
                    const Tensor& dy) { return padded(dy.expand_dims(axis), shape, axis, first); });
}

Var Var::operator[](std::int64_t position) const { return select(*this, 0, position); }

}  // namespace braid
