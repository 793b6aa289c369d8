#include <braid/autograd/ops/cumsum.h>

#include <braid/autograd/kernels/rows.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/autograd/ops/detail/linear_map.h>

namespace braid {

/// The sums from the front, or those from the back for the vjp: x_j is in all y_i with i >= j.
static Tensor running_sums(const Tensor& x, int axis, bool from_the_back) {
  const kernels::RowsAlong along("cumsum", x.shape(), {x.shape().index(axis, "cumsum")});
  const Tensor rows = along.lay_out(x);
  Tensor sums(rows.shape(), x.dtype());
  dispatch_float("cumsum", x.dtype(), [&]<class T>(T) {
    T* y = sums.mutable_data<T>();
    const std::int64_t first = from_the_back ? along.width - 1 : 0, step = from_the_back ? -1 : 1;
    detail::parallel_for_each(sums.numel() == 0 ? 0 : along.count, along.width, 16384, [&](std::int64_t row) {
      double sum = 0;
      for (std::int64_t i = 0, at = row * along.width + first; i < along.width; ++i, at += step)
        y[at] = static_cast<T>(sum += static_cast<double>(rows.data<T>()[at]));
    });
  });
  return along.restore(sums);
}

Var cumsum(const Var& x, int axis) {
  if (x.dtype() == DType::bf16) return detail::in_f32([&](const Var& wide) { return cumsum(wide, axis); }, x);
  return detail::linear_map(
      "cumsum", x, [axis](const Tensor& x) { return running_sums(x, axis, false); },
      [axis](const Tensor& dy) { return running_sums(dy, axis, true); });
}

}  // namespace braid
