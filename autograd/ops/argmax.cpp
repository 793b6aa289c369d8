#include <braid/autograd/ops/argmax.h>

#include <functional>
#include <limits>

#include <braid/autograd/kernels/rows.h>

namespace braid {
namespace {

/// The position of the first element that all later ones are `no_better` than, or of the first NaN.
std::int64_t first_best(const auto* x, std::int64_t n, auto no_better) {
  std::int64_t best = 0;
  auto value = x[0];
  for (std::int64_t i = 1; i < n && value == value; ++i) {
    if (no_better(x[i], value)) continue;  // NaN is not
    best = i;
    value = x[i];
  }
  return best;
}

Tensor choose(const char* op, const Tensor& x, int axis, KeepDims keep_dims, auto no_better) {
  const kernels::RowsAlong along(op, x.shape(), {axis});
  Tensor y(reduced_shape(op, x.shape(), {axis}, keep_dims), DType::i32);
  if (y.numel() == 0) return y;
  check_shape(along.width > 0, "{}: shape {} has no elements to choose from", op, x.shape());
  check_shape(along.width <= std::numeric_limits<std::int32_t>::max(), "{}: axis {} of {} is too long for i32", op,
              axis, x.shape());
  const Tensor rows = along.lay_out(x);
  dispatch(x.dtype(), [&](auto zero) {
    const auto* first = rows.data<decltype(zero)>();
    auto* out = y.mutable_data<std::int32_t>();
    detail::parallel_for_each(along.count, along.width, 16384, [&](std::int64_t row) {
      out[row] = static_cast<std::int32_t>(first_best(first + row * along.width, along.width, no_better));
    });
  });
  return y;
}

}  // namespace

Tensor argmax(const Var& x, int axis, KeepDims keep_dims) {
  return choose("argmax", x.value(), axis, keep_dims, std::less_equal<>());
}

Tensor argmin(const Var& x, int axis, KeepDims keep_dims) {
  return choose("argmin", x.value(), axis, keep_dims, std::greater_equal<>());
}

}  // namespace braid
