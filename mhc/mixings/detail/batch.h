#pragma once
#include <braid/mhc/mixings/detail/kernels.h>

namespace braid::mhc::mixings {

template <class T>
struct Batch {
  Problem problem;
  Kernels<T> mixing;
  std::int64_t matrices;
};

/// A mixing of contiguous logits [matrices, m] on all threads, through the mixing's kernels for one vector of matrices.
template <class T>
struct BatchKernels {
  void (*forward)(const Batch<T>&, const T* logits, T* h);
  void (*vjp)(const Batch<T>&, const T* logits, const T* h, const T* dh, T* dlogits);
};

braid::kernels::Tables<BatchKernels> batch_kernels();

}  // namespace braid::mhc::mixings
