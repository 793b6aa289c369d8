#pragma once
#include <cstdint>

namespace braid::kernels {

/// What one step of Adam multiplies by; see adam_update.
struct AdamCoefficients {
  double beta1, beta2, eps;
  double step_size = 0;        ///< lr / (1 - beta1^t)
  double sqrt_correction = 1;  ///< sqrt(1 - beta2^t)
  double keep = 1;             ///< 1 - lr weight_decay where decay is decoupled
  double penalty = 0;          ///< weight_decay where it is a gradient
};

/// For each element: g = grad + penalty p, m += (1 - beta1) (g - m), v = beta2 v + (1 - beta2) g^2,
/// p = keep p - step_size m / (sqrt(v) / sqrt_correction + eps).
void adam_update(const AdamCoefficients& c, const float* grad, float* p, float* m, float* v, std::int64_t n);
void adam_update(const AdamCoefficients& c, const double* grad, double* p, double* m, double* v, std::int64_t n);

}  // namespace braid::kernels
