#include <braid/autograd/ops/sigmoid.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {

Var sigmoid(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) {
    kernels::elementwise_kernels().of<T>().sigmoid(x, y, n);
  };
  Tensor y = map_chunks("sigmoid", kernel, x.value());
  return record("sigmoid", y, {x}, [y](const Tensor& dy) {
    auto vjp = [](auto dy, auto y) { return dy * y * (1 - y); };
    return map("sigmoid", vjp, dy, y);
  });
}

}  // namespace braid
