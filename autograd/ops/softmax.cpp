#include <braid/autograd/ops/softmax.h>

#include <braid/autograd/kernels/rows_along.h>
#include <braid/autograd/kernels/softmax.h>

namespace braid {

using kernels::map_rows;
using kernels::RowsAlong;

Var softmax(const Var& x, const Axes& axes) {
  const RowsAlong along("softmax", x.shape(), axes);
  auto forward = []<class T>(std::int64_t rows, std::int64_t width, const T* x, T* y) {
    kernels::softmax<T>().softmax(rows, width, x, y);
  };
  Tensor y = map_rows("softmax", along, forward, x.value());
  return record("softmax", y, {x}, [along, y](const Tensor& dy) {
    auto vjp = []<class T>(std::int64_t rows, std::int64_t width, const T* dy, const T* y, T* dx) {
      kernels::softmax<T>().softmax_vjp(rows, width, dy, y, dx);
    };
    return map_rows("softmax", along, vjp, dy, y);
  });
}

Var log_softmax(const Var& x, const Axes& axes) {
  const RowsAlong along("log_softmax", x.shape(), axes);
  auto forward = []<class T>(std::int64_t rows, std::int64_t width, const T* x, T* y) {
    kernels::softmax<T>().log_softmax(rows, width, x, y);
  };
  Tensor y = map_rows("log_softmax", along, forward, x.value());
  return record("log_softmax", y, {x}, [along, y](const Tensor& dy) {
    auto vjp = []<class T>(std::int64_t rows, std::int64_t width, const T* dy, const T* y, T* dx) {
      kernels::softmax<T>().log_softmax_vjp(rows, width, dy, y, dx);
    };
    return map_rows("log_softmax", along, vjp, dy, y);
  });
}

}  // namespace braid
