#pragma once
#include <braid/mhc/mixings/kernels.h>

namespace braid::mhc::kernels {

template <class T>
struct Batch {
  mixings::Problem problem;
  mixings::Kernels<T> mixing;
  std::int64_t matrices;
};

/// A mixing of many logits [matrices, m], contiguous, on all threads: a vector's worth at a time goes through the
/// mixing's own kernels.
template <class T>
struct BatchKernels {
  void (*forward)(const Batch<T>&, const T* logits, T* h);
  void (*vjp)(const Batch<T>&, const T* logits, const T* h, const T* dh, T* dlogits);
};

braid::kernels::Tables<BatchKernels> batch_kernels();

}  // namespace braid::mhc::kernels
