#include <braid/autograd/ops/slice.h>

#include <braid/core/detail/write_slice.h>

namespace braid {

Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end) {
  Tensor y = x.value().slice(axis, begin, end);
  const std::int64_t first = begin < 0 ? begin + x.size(axis) : begin;
  return record("slice", std::move(y), {x}, [shape = x.shape(), axis, first](const Tensor& dy) {
    Tensor dx = zeros(shape, dy.dtype());
    write_slice(dx, axis, first, dy);
    return dx;
  });
}

}  // namespace braid
