#include <braid/autograd/ops/index_select.h>

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/core/detail/indexing.h>

namespace braid {

Var index_select(const Var& x, int axis, const Tensor& given_ids) {
  check_shape(given_ids.rank() == 1, "index_select: ids must have one axis but have shape {}", given_ids.shape());
  const std::int64_t size = x.shape()[x.shape().index(axis, "index_select")];
  const Tensor ids = detail::from_front("index_select", given_ids, size);
  return detail::linear_map(
      "index_select", x, [=](const Tensor& x) { return detail::index_select(x, axis, ids); },
      [=, shape = x.shape()](const Tensor& dy) { return detail::index_add(shape, axis, ids, dy); });
}

}  // namespace braid
