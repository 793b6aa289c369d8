#include <braid/autograd/ops/slice.h>

#include <braid/core/detail/indexing.h>

namespace braid {

Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end) {
  const std::int64_t first = begin < 0 ? begin + x.size(axis) : begin;
  return record("slice", x.value().slice(axis, begin, end), {x}, [shape = x.shape(), axis, first](const Tensor& dy) {
    Tensor dx = zeros(shape, dy.dtype());
    detail::write_slice(dx, axis, first, dy);
    return dx;
  });
}

}  // namespace braid
