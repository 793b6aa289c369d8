#pragma once
#include <cstdint>

#include <braid/core/bfloat16.h>

namespace braid::kernels {

/// The kernels for the best instruction set of this processor.
struct ConvertKernels {
  void (*widen)(const bfloat16* x, float* y, std::int64_t n);
  /// To nearest even.
  void (*round)(const float* x, bfloat16* y, std::int64_t n);
  /// x as the sum of `parts` bf16, each the nearest to what the ones before leave; part p lies at y + p step. Whether
  /// all of them are finite.
  bool (*split)(const float* x, std::int64_t n, int parts, bfloat16* y, std::int64_t step);
};

ConvertKernels convert_kernels();

}  // namespace braid::kernels
