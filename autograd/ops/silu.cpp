#include <braid/autograd/ops/silu.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {

Var silu(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) { kernels::elementwise_kernels().of<T>().silu(x, y, n); };
  return record("silu", map_chunks("silu", kernel, x.value()), {x}, [x = x.value()](const Tensor& dy) {
    auto vjp = []<class T>(const T* dy, const T* x, T* dx, std::int64_t n) {
      kernels::elementwise_kernels().of<T>().silu_vjp(dy, x, dx, n);
    };
    return map_chunks("silu", vjp, dy, x);
  });
}

}  // namespace braid
