#include <braid/autograd/ops/expm1.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {

Var expm1(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) {
    kernels::elementwise_kernels().of<T>().expm1(x, y, n);
  };
  return record("expm1", map_chunks("expm1", kernel, x.value()), {x}, [x = x.value()](const Tensor& dy) {
    auto vjp = []<class T>(const T* dy, const T* x, T* dx, std::int64_t n) {
      kernels::elementwise_kernels().of<T>().expm1_vjp(dy, x, dx, n);
    };
    return map_chunks("expm1", vjp, dy, x);
  });
}

}  // namespace braid
