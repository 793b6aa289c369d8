#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>
#include <braid/core/product.h>

namespace braid::kernels {

/// Each element of c is summed over this much of k from zero by fused multiply-adds, and those sums are added in order.
template <class T>
inline constexpr std::int64_t kDepth = 1536 / sizeof(T);

/// Products of up to this many rows read b once and do not pack it: they take only the time of reading it.
inline constexpr std::int64_t kFewRows = 8;

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct PackedProductKernels {
  /// Elements of scratch memory, 64-byte aligned, that `multiply` needs.
  std::int64_t (*scratch)(std::int64_t m, std::int64_t n, std::int64_t k);
  /// m, n and k are at least 1; row and bf16_terms are ignored. The order in which each element of c is summed over k
  /// does not depend on m and n.
  void (*multiply)(Product<T> product, T* scratch);
  /// For floats: up to kFewRows rows times the first columns of b, which takes the place of product.b, with the bits of
  /// `multiply` for b widened. Returns how many columns of c it has computed. `scratch` has kFewRows k elements.
  std::int64_t (*multiply_by_bf16)(const Product<T>& product, MatrixView<const bfloat16> b, T* scratch) = nullptr;
};

Tables<PackedProductKernels> packed_product_kernels();

}  // namespace braid::kernels
