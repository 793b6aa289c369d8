#pragma once
#include <cstdint>

#include <braid/autograd/kernels/rows.h>
#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// Rows of logits and the class that each should have. T is float or double.
template <class T>
struct LabeledRows : Rows {
  const T* logits;              // [rows, width]
  const std::int32_t* targets;  // [rows]
  std::int32_t ignored;         // the target of rows that do not count
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct CrossEntropyKernels {
  /// logsumexp [rows] = log(sum(exp(logits))), losses [rows] = logsumexp - logits[target], zero for rows that do not
  /// count.
  void (*forward)(const LabeledRows<T>& in, T* logsumexp, T* losses);
  /// dlogits [rows, width] = scales [rows] * (exp(logits - logsumexp) - onehot(target)), zero for rows that do not
  /// count.
  void (*vjp)(const LabeledRows<T>& in, const T* logsumexp, const T* scales, T* dlogits);
};

Tables<CrossEntropyKernels> cross_entropy_kernels();

}  // namespace braid::kernels
