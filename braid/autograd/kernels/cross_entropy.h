#pragma once
#include <cstdint>

namespace braid::kernels {

/// Rows of logits. T is float or double.
template <class T>
struct LogitRows {
  std::int64_t rows, width;
  const T* logits;  // [rows, width]
};

/// result [rows] = log(sum(exp(logits))), shifted by each row's maximum.
void logsumexp(const LogitRows<float>& in, float* result);
void logsumexp(const LogitRows<double>& in, double* result);

/// dlogits [rows, width] = scale * (exp(logits - logsumexp) - onehot(target)); rows whose target is `ignored` are zero.
void cross_entropy_vjp(const LogitRows<float>& in, const float* logsumexp, const std::int32_t* targets,
                       std::int32_t ignored, double scale, float* dlogits);
void cross_entropy_vjp(const LogitRows<double>& in, const double* logsumexp, const std::int32_t* targets,
                       std::int32_t ignored, double scale, double* dlogits);

}  // namespace braid::kernels
