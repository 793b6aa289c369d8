#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// The factors of one step of Adam; see AdamKernels.
struct AdamCoefficients {
  double beta1, beta2, eps;
  double step_size = 0;        ///< lr / (1 - beta1^t)
  double sqrt_correction = 1;  ///< sqrt(1 - beta2^t)
  double keep = 1;             ///< 1 - lr weight_decay where decay is decoupled
  double penalty = 0;          ///< weight_decay where it is a gradient
  double grad_scale = 1;
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct AdamKernels {
  /// For each of n elements: g = grad_scale grad + penalty p, m += (1 - beta1) (g - m), v = beta2 v + (1 - beta2) g^2,
  /// p = keep p - step_size m / (sqrt(v) / sqrt_correction + eps).
  void (*update)(const AdamCoefficients& c, const T* grad, T* p, T* m, T* v, std::int64_t n);
};

Tables<AdamKernels> adam_kernels();

}  // namespace braid::kernels
