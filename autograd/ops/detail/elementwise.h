#pragma once
#include <cstdint>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/autograd/tape.h>
#include <braid/core/map.h>

namespace braid::detail {

/// The op on x with kernels forward(table) and vjp(table), members of ElementwiseKernels; the vjp reads x.
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

}  // namespace braid::detail
