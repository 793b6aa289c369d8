#include <braid/autograd/ops/exp.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {

Var exp(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) { kernels::elementwise_kernels().of<T>().exp(x, y, n); };
  Tensor y = map_chunks("exp", kernel, x.value());
  return record("exp", y, {x}, [y](const Tensor& dy) {
    auto vjp = [](auto dy, auto y) { return dy * y; };
    return map("exp", vjp, dy, y);
  });
}

}  // namespace braid
