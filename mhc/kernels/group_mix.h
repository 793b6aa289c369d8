#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>
#include <braid/mhc/kernels/read_write.h>

namespace braid::mhc::kernels {

/// y_i = sum_j mixing_ij x_j + scale_i f_i on n groups of C channels, with one set of maps for all tokens.
/// mixing and x are null when there is no such term.
template <class T>
struct GroupMix {
  StreamSizes sizes;
  const T *mixing, *scale;  // [n, n], [n]
  const T *x, *f;           // [tokens, n, C]
  T* y;                     // [tokens, n, C]
};

/// Its vjp, in one pass: dx_j = sum_i mixing_ij dy_i, df_i = scale_i dy_i, dmixing_ij = <dy_i, x_j>,
/// dscale_i = <dy_i, f_i>, the last two summed tile by tile, then in the order of the tiles.
template <class T>
struct GroupMixVjp {
  StreamSizes sizes;
  const T *mixing, *scale, *x, *f, *dy;
  T *dmixing, *dscale, *dx, *df;
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct GroupMixKernels {
  void (*mix)(const GroupMix<T>&);
  void (*vjp)(const GroupMixVjp<T>&);
};

braid::kernels::Tables<GroupMixKernels> group_mix_kernels();

}  // namespace braid::mhc::kernels
