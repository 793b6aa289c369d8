#pragma once
#include <braid/core/product.h>

namespace braid::kernels {

/// The kernels of elements in a row, for the best instruction set of this processor.
struct ElementKernels {
  void (*widen)(const bfloat16* x, float* y, std::int64_t n);
  void (*round)(const float* x, bfloat16* y, std::int64_t n);  ///< to nearest even
  /// round that returns whether all results are finite.
  bool (*round_finite)(const float* x, bfloat16* y, std::int64_t n);
  void (*add)(const bfloat16* x, bfloat16* y, std::int64_t n);  ///< y += x
  /// y[i] = the upper 24 bits of the first word of Philox4x32-10 for (key, draw, first + i), times 2^-24. Has the same
  /// bits on all instruction sets.
  void (*uniform)(std::uint64_t key, std::uint64_t draw, std::uint64_t first, std::int64_t n, float* y);
};

ElementKernels element_kernels();

/// y [rows, columns] = x, row by row as they are in memory, by `widen` or `round` of the kernels.
void convert_rows(auto convert, std::int64_t rows, std::int64_t columns, auto x, auto y) {
  for (std::int64_t i = 0; i < rows; ++i) convert(x.data + i * x.stride, y.data + i * y.stride, columns);
}

}  // namespace braid::kernels
