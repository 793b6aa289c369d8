#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// c [m, n] = alpha * op(a) op(b) + beta * c as gemm_serial takes it; m, n and k are at least 1.
template <class T, class C = T>
struct PackedProduct {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  Compute<T> alpha;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  Compute<T> beta;
  C* c;
  std::int64_t ldc;
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct PackedProductKernels {
  /// How many elements of scratch memory, 64-byte aligned, `multiply` takes.
  std::int64_t (*scratch)(std::int64_t m, std::int64_t n, std::int64_t k);
  /// Each element of c is summed over k in one order, which does not depend on m and n.
  void (*multiply)(PackedProduct<T> product, T* scratch);
  /// Up to that many rows take the time of reading b.
  std::int64_t few_rows;
};

Tables<PackedProductKernels> packed_product_kernels();

}  // namespace braid::kernels
