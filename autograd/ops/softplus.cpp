#include <braid/autograd/ops/softplus.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {

Var softplus(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) {
    kernels::elementwise_kernels().of<T>().softplus(x, y, n);
  };
  return record("softplus", map_chunks("softplus", kernel, x.value()), {x}, [x = x.value()](const Tensor& dy) {
    auto vjp = []<class T>(const T* dy, const T* x, T* dx, std::int64_t n) {
      kernels::elementwise_kernels().of<T>().softplus_vjp(dy, x, dx, n);
    };
    return map_chunks("softplus", vjp, dy, x);
  });
}

}  // namespace braid
