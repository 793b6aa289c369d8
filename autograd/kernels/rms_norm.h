#pragma once
#include <cstdint>

namespace braid::kernels {

/// Rows to normalise. T is float or double.
template <class T>
struct RmsNormRows {
  std::int64_t rows, width;
  const T* x;       // [rows, width]
  const T* weight;  // [width]
};

/// rstd [rows] = 1 / sqrt(mean(x^2) + eps), y [rows, width] = x * rstd * weight.
void rms_norm(const RmsNormRows<float>& in, double eps, float* y, float* rstd);
void rms_norm(const RmsNormRows<double>& in, double eps, double* y, double* rstd);

/// dx [rows, width] and these rows' dweight [width] from the cotangent dy of y.
void rms_norm_vjp(const RmsNormRows<float>& in, const float* rstd, const float* dy, float* dx, float* dweight);
void rms_norm_vjp(const RmsNormRows<double>& in, const double* rstd, const double* dy, double* dx, double* dweight);

}  // namespace braid::kernels
