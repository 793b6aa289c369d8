#pragma once
#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid::detail {

/// The kernel `member(table)` of ElementwiseKernels on the elements of tensors of one shape.
template <class Member, class... Inputs>
Tensor map_kernel(const char* name, Member member, const Inputs&... inputs) {
  auto kernel = [=]<class T>(const T* x, auto... others) {
    member(kernels::elementwise_kernels().of<T>())(x, others...);
  };
  return map_chunks(name, kernel, inputs...);
}

}  // namespace braid::detail
