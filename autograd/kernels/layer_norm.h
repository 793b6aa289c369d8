#pragma once

#include <braid/autograd/kernels/rows.h>
#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// The inputs of layer normalization.
template <class T>
struct LayerNormRows {
  Rows rows;
  const T* x;                      // [rows, width]
  const Compute<T>*weight, *bias;  // [width]; the vjp does not read the bias
};

/// The mean and the inverse standard deviation of each row, which the vjp needs.
template <class T>
struct LayerNormMoments {
  T *mean, *rstd;  // [rows]
};

/// The results of the vjp.
template <class T>
struct LayerNormCotangents {
  T* dx;                       // [rows, width]
  Compute<T>*dweight, *dbias;  // [blocks, width], the sums over each block of rows
};

/// The kernels for the best instruction set of this processor. T is float, double or bfloat16.
template <class T>
struct LayerNormKernels {
  /// rstd = 1 / sqrt(variance(x) + eps), y [rows, width] = (x - mean) * rstd * weight + bias.
  void (*forward)(const LayerNormRows<T>& in, double eps, T* y, LayerNormMoments<Compute<T>> moments);
  void (*vjp)(const LayerNormRows<T>& in, LayerNormMoments<const Compute<T>> moments, const T* dy,
              LayerNormCotangents<T> out);
};

Tables<LayerNormKernels> layer_norm_kernels();

}  // namespace braid::kernels
