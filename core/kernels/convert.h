#pragma once
#include <braid/core/product.h>

namespace braid::kernels {

/// The kernels for the best instruction set of this processor.
struct ConvertKernels {
  void (*widen)(const bfloat16* x, float* y, std::int64_t n);
  void (*round)(const float* x, bfloat16* y, std::int64_t n);  ///< to nearest even
  /// round that returns whether all results are finite.
  bool (*round_finite)(const float* x, bfloat16* y, std::int64_t n);
};

ConvertKernels convert_kernels();

/// y [rows, columns] = x, row by row as they are in memory.
inline void widen_rows(std::int64_t rows, std::int64_t columns, MatrixView<const bfloat16> x, MatrixView<float> y) {
  const auto widen = convert_kernels().widen;
  for (std::int64_t i = 0; i < rows; ++i) widen(x.data + i * x.stride, y.data + i * y.stride, columns);
}

/// The same, rounded to bf16.
inline void round_rows(std::int64_t rows, std::int64_t columns, MatrixView<const float> x, MatrixView<bfloat16> y) {
  const auto round = convert_kernels().round;
  for (std::int64_t i = 0; i < rows; ++i) round(x.data + i * x.stride, y.data + i * y.stride, columns);
}

}  // namespace braid::kernels
