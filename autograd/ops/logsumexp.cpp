#include <braid/autograd/ops/logsumexp.h>

#include <braid/autograd/kernels/rows_along.h>
#include <braid/autograd/kernels/softmax.h>

namespace braid {
namespace {

using kernels::RowsAlong;

Tensor forward(const RowsAlong& along, const Tensor& x, const Shape& shape) {
  const Tensor in = along.lay_out(x);
  Tensor y(shape, x.dtype());
  dispatch_float("logsumexp", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = y.mutable_data<T>();
    along.for_each_block([&](std::int64_t row, std::int64_t n) {
      kernels::softmax<T>().logsumexp(n, along.width, in.data<T>() + row * along.width, out + row);
    });
  });
  return y;
}

Tensor backward(const RowsAlong& along, const Tensor& dy, const Tensor& x, const Tensor& y) {
  const Tensor in = along.lay_out(x), dy_rows = dy.contiguous();
  Tensor dx(in.shape(), in.dtype());
  dispatch_float("logsumexp", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = dx.mutable_data<T>();
    along.for_each_block([&](std::int64_t row, std::int64_t n) {
      const std::int64_t at = row * along.width;
      kernels::softmax<T>().logsumexp_vjp(n, along.width, dy_rows.data<T>() + row, in.data<T>() + at, y.data<T>() + row,
                                          out + at);
    });
  });
  return along.restore(dx);
}

}  // namespace

Var logsumexp(const Var& x, const Axes& axes, bool keep_dims) {
  const RowsAlong along("logsumexp", x.shape(), axes);
  Tensor y = forward(along, x.value(), reduced_shape("logsumexp", x.shape(), axes, keep_dims));
  return record("logsumexp", y, {x}, [along, x = x.value(), y](const Tensor& dy) { return backward(along, dy, x, y); });
}

}  // namespace braid
