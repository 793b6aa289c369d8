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

/// Rows of op(a), or columns of op(b): element p of line i at data[i * line_step + p * depth_step]. One step is 1.
template <class T>
struct Lines {
  const T* data;
  std::int64_t line_step, depth_step;

  Lines from(std::int64_t line, std::int64_t p) const {
    return {data + line * line_step + p * depth_step, line_step, depth_step};
  }
};

template <class T, class C>
Lines<T> rows_of_a(const PackedProduct<T, C>& p) {
  return p.transpose_a ? Lines<T>{p.a, 1, p.lda} : Lines<T>{p.a, p.lda, 1};
}

template <class T, class C>
Lines<T> columns_of_b(const PackedProduct<T, C>& p) {
  return p.transpose_b ? Lines<T>{p.b, p.ldb, 1} : Lines<T>{p.b, 1, p.ldb};
}

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
