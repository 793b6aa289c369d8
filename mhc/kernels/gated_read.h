#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// A read of streams through low-rank gates, with or without the gates of the write that follows.
struct GatedSizes {
  std::int64_t tokens, n, channels, rank;
  bool writes;
  double eps;

  std::int64_t width() const { return n * channels; }
  /// Rows of `in`: low | post.
  std::int64_t rows() const { return rank + (writes ? n : 0); }
};

template <class T>
struct GatedParams {
  const T* norm;  // [nC]
  const T* in;    // [rows, nC]
  const T* up;    // [nC, rank]
};

/// With normed_i = x_i rstd_i (1 + norm_i), rstd_i = 1 / sqrt(mean(x_i^2) + eps), and z = in normed / n:
/// u = mean_i sigmoid(up silu(z_low))_i normed_i, post = 2 sigmoid(z_post).
template <class T>
struct GatedRead {
  GatedSizes sizes;
  GatedParams<T> params;
  const T* x;       // [tokens, n, C]
  T *rstd, *z, *u;  // [tokens, n], [tokens, rows], [tokens, C]
  T* post;          // [tokens, n]; unused without a write
};

/// Its vjp, with that of the residual path, which passes x on, tile by tile of tokens that stay in cache. The gates are
/// computed anew; they and the normed streams are kept for the products of all tokens that give din and dup.
template <class T>
struct GatedReadVjp {
  GatedSizes sizes;
  GatedParams<T> params;
  const T *x, *rstd, *z;     // as given, and the results of the forward pass
  const T *du, *dy, *dpost;  // [tokens, C], [tokens, n, C] or null for zero, [tokens, n] where there is a write
  T* dx;                     // [tokens, n, C]
  T *dnorm, *din, *dup;      // as the parameters
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct GatedReadKernels {
  void (*read)(const GatedRead<T>&);
  void (*vjp)(const GatedReadVjp<T>&);
};

braid::kernels::Tables<GatedReadKernels> gated_read_kernels();

}  // namespace braid::mhc::kernels
