#include <braid/autograd/ops/softmax.h>

#include <braid/autograd/kernels/rows.h>
#include <braid/autograd/kernels/softmax.h>
#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

using kernels::In, kernels::Out, kernels::RowsAlong;

/// A tensor shaped like the inputs, computed row by row with the kernel that `choose` takes from the table. Returns
/// early for tensors without elements: [2^59, 0] has many rows.
template <class Choose, class... Inputs>
Tensor map_rows(const char* op, const RowsAlong& along, Choose choose, const Inputs&... inputs) {
  const auto run = [&](const Tensor& first, const auto&... rest) {
    Tensor y(first.shape(), first.dtype());
    kernels::softmax_kernels().dispatch(op, y.dtype(), [&](const auto& kernels) {
      if (y.numel() > 0) choose(kernels)(along, In{first}, In{rest}..., Out{y});
    });
    return along.restore(y);
  };
  return run(along.lay_out(inputs)...);
}

Var composed_softmax(const Var& x, const Axes& axes) {
  const Var e = exp(x - detail::largest(x.value(), axes));
  return e / sum(e, axes, true);
}

Var composed_log_softmax(const Var& x, const Axes& axes) {
  const Var shifted = x - detail::largest(x.value(), axes);
  return shifted - log(sum(exp(shifted), axes, true));
}

}  // namespace

Var softmax(const Var& x, const Axes& axes) {
  if (x.dtype() == DType::bf16) return detail::in_f32([&](const Var& wide) { return softmax(wide, axes); }, x);
  check_floating("softmax", x.dtype());
  const RowsAlong along("softmax", x.shape(), axes);
  if (Composed::active()) return composed_softmax(x, axes);
  Tensor y = map_rows(
      "softmax", along, [](auto kernels) { return kernels.softmax; }, x.value());
  return record("softmax", y, {x}, [along, y](const Tensor& dy) {
    return map_rows(
        "softmax", along, [](auto kernels) { return kernels.softmax_vjp; }, dy, y);
  });
}

Var log_softmax(const Var& x, const Axes& axes) {
  if (x.dtype() == DType::bf16) return detail::in_f32([&](const Var& wide) { return log_softmax(wide, axes); }, x);
  check_floating("log_softmax", x.dtype());
  const RowsAlong along("log_softmax", x.shape(), axes);
  if (Composed::active()) return composed_log_softmax(x, axes);
  Tensor y = map_rows(
      "log_softmax", along, [](auto kernels) { return kernels.log_softmax; }, x.value());
  return record("log_softmax", y, {x}, [along, y](const Tensor& dy) {
    return map_rows(
        "log_softmax", along, [](auto kernels) { return kernels.log_softmax_vjp; }, dy, y);
  });
}

}  // namespace braid
