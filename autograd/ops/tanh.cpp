#include <braid/autograd/ops/tanh.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {

Var tanh(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) { kernels::elementwise_kernels().of<T>().tanh(x, y, n); };
  Tensor y = map_chunks("tanh", kernel, x.value());
  return record("tanh", y, {x}, [y](const Tensor& dy) {
    auto vjp = [](auto dy, auto y) { return dy * (1 - y * y); };
    return map("tanh", vjp, dy, y);
  });
}

}  // namespace braid
