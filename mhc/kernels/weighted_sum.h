#pragma once
#include <cstdint>
#include <span>

#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

/// y = x + sum_k weights_k states_k over `size` elements.
template <class T>
struct WeightedSum {
  std::int64_t size;
  const T* weights;  // [K]
  const T* x;
  std::span<const T* const> states;  // K of them
  T* y;
};

/// The vjp, in one pass: dstates_k = weights_k dy, dweights_k = <dy, states_k>, summed block by block, then in the
/// order of the blocks; null where a gradient is unused. dx is dy.
template <class T>
struct WeightedSumVjp {
  std::int64_t size;
  const T* weights;
  std::span<const T* const> states;
  const T* dy;
  std::span<T* const> dstates;
  T* dweights;
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct WeightedSumKernels {
  void (*sum)(const WeightedSum<T>&);
  void (*vjp)(const WeightedSumVjp<T>&);
};

braid::kernels::Tables<WeightedSumKernels> weighted_sum_kernels();

}  // namespace braid::mhc::kernels
