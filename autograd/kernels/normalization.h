#pragma once
#include <braid/autograd/kernels/rows.h>
#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// The inputs of a normalization of rows.
template <class T>
struct NormalizedRows : Rows {
  const T* x;                                // [rows, width]
  const Compute<T>*weight, *bias = nullptr;  // [width]; only the forward pass of layer_norm reads the bias
};

/// What the vjp of the vjp of rms_norm reads, the cotangents a and b of its results dx and dweight, and what it writes.
template <class T>
struct RMSNormSecondVjp {
  const Compute<T>* rstd;  // [rows]
  const T *dy, *a;         // [rows, width]
  const Compute<T>* b;     // [width]
  T *dx, *ddy;             // the cotangents of x and dy [rows, width]
  Compute<T>* dweight;     // of each block of rows [blocks, width]
};

/// The results of the vjp of layer_norm.
template <class T>
struct LayerNormCotangents {
  T* dx;                       // [rows, width]
  Compute<T>*dweight, *dbias;  // [blocks, width], the sums over each block of rows
};

/// The kernels for the best instruction set of this processor. T is float, double or bfloat16.
template <class T>
struct NormalizationKernels {
  /// rstd [rows] = 1 / sqrt(mean(x^2) + eps), y [rows, width] = x * rstd * weight.
  void (*rms_norm)(const NormalizedRows<T>& in, double eps, T* y, Compute<T>* rstd);
  /// dx [rows, width] and, of each block of rows, dweight [blocks, width] from the cotangent dy of y.
  void (*rms_norm_vjp)(const NormalizedRows<T>& in, const Compute<T>* rstd, const T* dy, T* dx, Compute<T>* dweight);
  /// The vjp of the vjp: the cotangents of x, weight and dy for those of its results.
  void (*rms_norm_second_vjp)(const NormalizedRows<T>& in, RMSNormSecondVjp<T> cotangents);

  /// mean [rows], rstd [rows] = 1 / sqrt(variance(x) + eps), which the vjp needs, and
  /// y [rows, width] = (x - mean) * rstd * weight + bias.
  void (*layer_norm)(const NormalizedRows<T>& in, double eps, T* y, Compute<T>* mean, Compute<T>* rstd);
  void (*layer_norm_vjp)(const NormalizedRows<T>& in, const Compute<T>* mean, const Compute<T>* rstd, const T* dy,
                         LayerNormCotangents<T> out);
};

Tables<NormalizationKernels> normalization_kernels();

}  // namespace braid::kernels
