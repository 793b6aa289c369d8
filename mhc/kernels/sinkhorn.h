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

/// out[b] = Sinkhorn-Knopp of exp(logits[b]); both contiguous [matrices, n, n].
void sinkhorn_forward(const SinkhornProblem& problem, const float* logits, float* out);
void sinkhorn_forward(const SinkhornProblem& problem, const double* logits, double* out);

/// dlogits from the cotangent dy of the output. Recomputes the iterates and keeps n sums a half-step, in cache.
void sinkhorn_vjp(const SinkhornProblem& problem, const float* logits, const float* dy, float* dlogits);
void sinkhorn_vjp(const SinkhornProblem& problem, const double* logits, const double* dy, double* dlogits);

}  // namespace braid::mhc::kernels
