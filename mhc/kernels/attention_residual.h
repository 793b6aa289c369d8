#pragma once
#include <vector>

#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// The kernels for the best instruction set of this processor, on contiguous tensors: key [C] and N states v_i
/// [..., C]. T, that of the states, is float, double or bfloat16.
template <class T>
struct AttentionResidualKernels {
  /// y = sum_i weights_i v_i, weights = softmax(z), z_i = <v_i, key> rstd_i, rstd_i = 1 / sqrt(mean(v_i^2) + eps).
  /// Fills saved [..., 3, N] with weights, z and rstd.
  void (*read)(const Tensor& key, const std::vector<Tensor>& states, double eps, Tensor& saved, Tensor& y);
  /// The vjp, in one pass. `gradients` are dkey, which is summed tile by tile, then in the order of the tiles, and the
  /// dv_i, to which their parts are added; undefined where one is unused.
  void (*vjp)(const Tensor& key, const std::vector<Tensor>& states, const Tensor& saved, const Tensor& dy,
              std::vector<Tensor>& gradients);
};

braid::kernels::Tables<AttentionResidualKernels> attention_residual_kernels();

}  // namespace braid::mhc::kernels
