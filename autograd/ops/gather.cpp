#include <braid/autograd/ops/gather.h>

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/core/detail/indexing.h>

namespace braid {

/// ids counted from the front, when they fit x.
static Tensor checked_ids(const char* op, const Tensor& x, int axis, const Tensor& ids) {
  x.shape().index(axis, op);
  check_shape(ids.rank() == x.rank() && ids.shape().with(axis, 0) == x.shape().with(axis, 0),
              "{}: ids must have the shape of x {} except along axis {} but have {}", op, x.shape(), axis, ids.shape());
  return detail::from_front(op, ids, x.size(axis));
}

Var detail::record_gather(const char* op, const Var& x, int axis, const Tensor& ids) {
  return linear_map(
      op, x, [=](const Tensor& x) { return detail::gather(x, axis, ids); },
      [shape = x.shape(), axis, ids](const Tensor& dy) {
        return detail::scatter_add(zeros(shape, dy.dtype()), axis, ids, dy);
      });
}

Var gather(const Var& x, int axis, const Tensor& ids) {
  return detail::record_gather("gather", x, axis, checked_ids("gather", x.value(), axis, ids));
}

Var scatter_add(const Var& x, int axis, const Tensor& given_ids, const Var& src) {
  check_same_dtype("scatter_add", x.value(), src.value());
  const Tensor ids = checked_ids("scatter_add", x.value(), axis, given_ids);
  check_shape(src.shape() == ids.shape(), "scatter_add: src must have the shape {} of ids but has {}", ids.shape(),
              src.shape());
  Tensor y = detail::scatter_add(x.value().clone(), axis, ids, src.value());
  return record("scatter_add", std::move(y), {x, src}, [axis, ids](const Var& dy, const Needs& needs) {
    return std::array{needs[0] ? dy : Var(), needs[1] ? gather(dy, axis, ids) : Var()};
  });
}

}  // namespace braid
