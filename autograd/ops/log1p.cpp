#include <braid/autograd/ops/log1p.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {

Var log1p(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) {
    kernels::elementwise_kernels().of<T>().log1p(x, y, n);
  };
  return record("log1p", map_chunks("log1p", kernel, x.value()), {x}, [x = x.value()](const Tensor& dy) {
    auto vjp = [](auto dy, auto x) { return dy / (1 + x); };
    return map("log1p", vjp, dy, x);
  });
}

}  // namespace braid
