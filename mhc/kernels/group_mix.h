#pragma once
#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// y_i = sum_j mixing_ij x_j + scale_i f_i on n groups of C channels, with one set of maps for all tokens; or the
/// gradients of these. Contiguous. mixing and x are undefined when there is no such term.
struct GroupMix {
  Tensor mixing = {}, scale = {};  // [n, n], [n]
  Tensor x = {}, f = {};           // [..., n, C]
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct GroupMixKernels {
  void (*mix)(const GroupMix&, Tensor& y);
  /// Its vjp, in one pass: dx_j = sum_i mixing_ij dy_i, df_i = scale_i dy_i, dmixing_ij = <dy_i, x_j>,
  /// dscale_i = <dy_i, f_i>, the last two summed tile by tile, then in the order of the tiles.
  void (*vjp)(const GroupMix&, const Tensor& dy, GroupMix& gradients);
};

braid::kernels::Tables<GroupMixKernels> group_mix_kernels();

}  // namespace braid::mhc::kernels
