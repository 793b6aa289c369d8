#include <braid/autograd/ops/sort.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <braid/autograd/kernels/rows.h>
#include <braid/autograd/ops/gather.h>

namespace braid {
namespace {

template <class T>
struct Item {
  T value;
  std::int32_t id;
};

/// The ids of the first k elements of a row of n in their order.
template <class T>
void sort_row(const T* x, std::int64_t n, std::int64_t k, bool descending, std::vector<Item<T>>& items,
              std::int32_t* ids) {
  items.resize(static_cast<std::size_t>(n));
  for (std::int32_t i = 0; i < n; ++i) items[static_cast<std::size_t>(i)] = {x[i], i};
  const auto less = [](T x, T y) { return x < y || (x == x && y != y); };  // NaN is the largest
  const auto before = [=](const Item<T>& a, const Item<T>& b) {  // a total order: any algorithm gives the stable result
    if (less(a.value, b.value)) return !descending;
    return less(b.value, a.value) ? descending : a.id < b.id;
  };
  std::nth_element(items.begin(), items.begin() + k, items.end(), before);  // nothing to do for k == n
  std::sort(items.begin(), items.begin() + k, before);
  std::transform(items.begin(), items.begin() + k, ids, [](const Item<T>& item) { return item.id; });
}

/// The ids of the first k along an axis in their order.
Tensor first_in_order(const char* op, const Tensor& x, std::int64_t k, int axis, bool descending) {
  const kernels::RowsAlong along(op, x.shape(), {x.shape().index(axis, op)});
  check_shape(along.width <= std::numeric_limits<std::int32_t>::max(),
              "{}: axis {} of x {} has more positions than i32 can number", op, axis, x.shape());
  const Tensor rows = along.lay_out(x);  // [.., n]
  Tensor ids(rows.shape().with(-1, k), DType::i32);
  if (ids.numel() > 0)
    dispatch(x.dtype(), [&]<class T>(T) {
      std::int32_t* id = ids.mutable_data<std::int32_t>();
      parallel_for(along.count, along.block, [&](std::int64_t begin, std::int64_t end) {
        std::vector<Item<T>> items;
        for (std::int64_t row = begin; row < end; ++row)
          sort_row(rows.data<T>() + row * along.width, along.width, k, descending, items, id + row * k);
      });
    });
  return along.restore(ids);
}

}  // namespace

Sorted sort(const Var& x, int axis, bool descending) {
  const std::int64_t n = x.shape()[x.shape().index(axis, "sort")];
  const Tensor ids = first_in_order("sort", x.value(), n, axis, descending);
  return {detail::record_gather("sort", x, axis, ids), ids};
}

Sorted topk(const Var& x, std::int64_t k, int axis) {
  const std::int64_t n = x.shape()[x.shape().index(axis, "topk")];
  check_value(0 <= k && k <= n, "topk: k must lie in [0, {}] for axis {} of x {} but is {}", n, axis, x.shape(), k);
  const Tensor ids = first_in_order("topk", x.value(), k, axis, true);
  return {detail::record_gather("topk", x, axis, ids), ids};
}

Tensor argsort(const Var& x, int axis, bool descending) {
  return first_in_order("argsort", x.value(), x.shape()[x.shape().index(axis, "argsort")], axis, descending);
}

}  // namespace braid
