#pragma once
#include <cstdint>

namespace braid::kernels {

/// Rows of logits and the class that each should have. T is float or double.
template <class T>
struct LabelledRows {
  std::int64_t rows, width;
  const T* logits;              // [rows, width]
  const std::int32_t* targets;  // [rows]
  std::int32_t ignored;         // the target of rows that do not count
};

/// logsumexp [rows] = log(sum(exp(logits))), losses [rows] = logsumexp - logits[target], zero for rows that do not
/// count.
void cross_entropy(const LabelledRows<float>& in, float* logsumexp, float* losses);
void cross_entropy(const LabelledRows<double>& in, double* logsumexp, double* losses);

/// dlogits [rows, width] = scale * (exp(logits - logsumexp) - onehot(target)), zero for rows that do not count.
void cross_entropy_vjp(const LabelledRows<float>& in, const float* logsumexp, double scale, float* dlogits);
void cross_entropy_vjp(const LabelledRows<double>& in, const double* logsumexp, double scale, double* dlogits);

}  // namespace braid::kernels
