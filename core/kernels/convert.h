#pragma once
#include <cstdint>

#include <braid/core/bfloat16.h>

namespace braid::kernels {

/// The kernels for the best instruction set of this processor.
struct ConvertKernels {
  void (*widen)(const bfloat16* x, float* y, std::int64_t n);
  /// To nearest even.
  void (*round)(const float* x, bfloat16* y, std::int64_t n);
  /// The same; returns whether all results are finite.
  bool (*round_finite)(const float* x, bfloat16* y, std::int64_t n);
};

ConvertKernels convert_kernels();

}  // namespace braid::kernels
