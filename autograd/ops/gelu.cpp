#include <braid/autograd/ops/gelu.h>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {
namespace {

/// The op whose kernels are these members of ElementwiseKernels.
template <class Forward, class Vjp>
Var elementwise(const char* name, const Var& x, Forward forward, Vjp vjp) {
  auto kernel = [=]<class T>(const T* x, T* y, std::int64_t n) {
    forward(kernels::elementwise_kernels().of<T>())(x, y, n);
  };
  return record(name, map_chunks(name, kernel, x.value()), {x}, [=, x = x.value()](const Tensor& dy) {
    auto kernel = [=]<class T>(const T* dy, const T* x, T* dx, std::int64_t n) {
      vjp(kernels::elementwise_kernels().of<T>())(dy, x, dx, n);
    };
    return map_chunks(name, kernel, dy, x);
  });
}

}  // namespace

Var gelu(const Var& x) {
  return elementwise(
      "gelu", x, [](const auto& of) { return of.gelu; }, [](const auto& of) { return of.gelu_vjp; });
}

Var gelu_erf(const Var& x) {
  return elementwise(
      "gelu_erf", x, [](const auto& of) { return of.gelu_erf; }, [](const auto& of) { return of.gelu_erf_vjp; });
}

}  // namespace braid
