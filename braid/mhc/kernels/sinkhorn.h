#pragma once
#include <cstdint>

namespace braid::mhc::kernels {

/// A batch of square matrices and how they are normalised.
struct SinkhornProblem {
  std::int64_t matrices;
  int n;
  int iterations;
  bool rows_last;  // the marginal that is normalised last; else columns
};

/// out[b] = Sinkhorn-Knopp of exp(logits[b]); both contiguous [matrices, n, n]. T is float or double.
template <class T>
void sinkhorn_forward(const SinkhornProblem& problem, const T* logits, T* out);

/// dlogits from the cotangent dy of the output. Recomputes the iterates: 2 n^2 numbers an iteration, a thread's own.
template <class T>
void sinkhorn_vjp(const SinkhornProblem& problem, const T* logits, const T* dy, T* dlogits);

}  // namespace braid::mhc::kernels
