#pragma once
#include <cstdint>

namespace braid::kernels {

/// Rows to normalise. T is float or double.
template <class T>
struct LayerNormRows {
  std::int64_t rows, width;
  const T* x;              // [rows, width]
  const T *weight, *bias;  // [width]
};

/// What the vjp needs of each row.
template <class T>
struct LayerNormMoments {
  T *mean, *rstd;  // [rows]
};

/// rstd = 1 / sqrt(variance(x) + eps), y [rows, width] = (x - mean) * rstd * weight + bias.
void layer_norm(const LayerNormRows<float>& in, double eps, float* y, const LayerNormMoments<float>& moments);
void layer_norm(const LayerNormRows<double>& in, double eps, double* y, const LayerNormMoments<double>& moments);

/// What the vjp gives: dx [rows, width], and these rows' dweight and dbias [width].
template <class T>
struct LayerNormCotangents {
  T *dx, *dweight, *dbias;
};

void layer_norm_vjp(const LayerNormRows<float>& in, const LayerNormMoments<const float>& moments, const float* dy,
                    const LayerNormCotangents<float>& out);
void layer_norm_vjp(const LayerNormRows<double>& in, const LayerNormMoments<const double>& moments, const double* dy,
                    const LayerNormCotangents<double>& out);

}  // namespace braid::kernels
