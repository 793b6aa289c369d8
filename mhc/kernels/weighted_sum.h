#pragma once
#include <vector>

#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// The kernels for the best instruction set of this processor, on contiguous tensors. T is float or double.
template <class T>
struct WeightedSumKernels {
  /// y = x + sum_k weights_k states_k: weights [K], and K states of the shape of x.
  void (*sum)(const Tensor& x, const Tensor& weights, const std::vector<Tensor>& states, Tensor& y);
  /// The vjp, in one pass: dstates_k = weights_k dy, dweights_k = <dy, states_k>, summed block by block, then in the
  /// order of the blocks. `gradients` are dx, which is dy, dweights and the dstates; undefined where one is unused.
  void (*vjp)(const Tensor& weights, const std::vector<Tensor>& states, std::vector<Tensor>& gradients);
};

braid::kernels::Tables<WeightedSumKernels> weighted_sum_kernels();

}  // namespace braid::mhc::kernels
