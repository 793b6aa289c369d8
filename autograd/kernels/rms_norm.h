#pragma once

#include <braid/autograd/kernels/rows.h>
#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// The inputs of RMS normalization.
template <class T>
struct RMSNormRows {
  Rows rows;
  const T* x;                // [rows, width]
  const Compute<T>* weight;  // [width]
};

/// What the vjp of the vjp reads, the cotangents a and b of its results dx and dweight, and what it writes.
template <class T>
struct RMSNormSecondVjp {
  const Compute<T>* rstd;  // [rows]
  const T *dy, *a;         // [rows, width]
  const Compute<T>* b;     // [width]
  T *dx, *ddy;             // the cotangents of x and dy [rows, width]
  Compute<T>* dweight;     // of each block of rows [blocks, width]
};

/// The kernels for the best instruction set of this processor. T is float, double or bfloat16.
template <class T>
struct RMSNormKernels {
  /// rstd [rows] = 1 / sqrt(mean(x^2) + eps), y [rows, width] = x * rstd * weight.
  void (*forward)(const RMSNormRows<T>& in, double eps, T* y, Compute<T>* rstd);
  /// dx [rows, width] and, of each block of rows, dweight [blocks, width] from the cotangent dy of y.
  void (*vjp)(const RMSNormRows<T>& in, const Compute<T>* rstd, const T* dy, T* dx, Compute<T>* dweight);
  /// The vjp of the vjp: the cotangents of x, weight and dy for those of its results.
  void (*second_vjp)(const RMSNormRows<T>& in, RMSNormSecondVjp<T> cotangents);
};

Tables<RMSNormKernels> rms_norm_kernels();

}  // namespace braid::kernels
