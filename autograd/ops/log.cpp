#include <braid/autograd/ops/log.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {

Var log(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) { kernels::elementwise_kernels().of<T>().log(x, y, n); };
  return record("log", map_chunks("log", kernel, x.value()), {x}, [x = x.value()](const Tensor& dy) {
    auto vjp = [](auto dy, auto x) { return dy / x; };
    return map("log", vjp, dy, x);
  });
}

}  // namespace braid
