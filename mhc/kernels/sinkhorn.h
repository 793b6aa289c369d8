#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// A batch of square matrices and how they are normalized.
struct SinkhornProblem {
  std::int64_t matrices;
  int n;
  int iterations;
  bool rows_last;  // the marginal that is normalized last; else columns
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct SinkhornKernels {
  /// out[b] = Sinkhorn-Knopp of exp(logits[b]); both contiguous [matrices, n, n].
  void (*forward)(const SinkhornProblem&, const T* logits, T* out);
  /// dlogits from the cotangent dy of the output. Recomputes the iterates and keeps n sums per half-step, in cache.
  void (*vjp)(const SinkhornProblem&, const T* logits, const T* dy, T* dlogits);
};

braid::kernels::Tables<SinkhornKernels> sinkhorn_kernels();

}  // namespace braid::mhc::kernels
