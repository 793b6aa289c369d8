#pragma once
#include <cstdint>

#include <braid/autograd/kernels/rows.h>
#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// Rows of logits and the class that each should have.
template <class T>
struct LabeledRows : Rows {
  const T* logits;              // [rows, width]
  const std::int32_t* targets;  // [rows]
  std::int32_t ignored;         // the target of rows that do not count
};

/// The kernels for the best instruction set of this processor. T is float, double or bfloat16.
template <class T>
struct CrossEntropyKernels {
  /// maxima [rows] of the logits, others [rows] = sum(exp(logits - maximum)) over all classes but the target, losses
  /// [rows] = log(sum(exp(logits))) - logits[target], zero for rows that do not count.
  void (*forward)(const LabeledRows<T>& in, Compute<T>* maxima, Compute<T>* others, Compute<T>* losses);
  /// dlogits [rows, width] = scales [rows] * (softmax(logits) - onehot(target)), zero for rows that do not count.
  void (*vjp)(const LabeledRows<T>& in, const Compute<T>* maxima, const Compute<T>* others, const Compute<T>* scales,
              T* dlogits);
};

Tables<CrossEntropyKernels> cross_entropy_kernels();

}  // namespace braid::kernels
