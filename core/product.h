#pragma once
#include <cstdint>

#include <braid/core/bfloat16.h>

namespace braid {

/// A matrix in memory, row-major: element (i, j) is at data[i * stride + j], or at data[j * stride + i] if transposed.
template <class T>
struct MatrixView {
  T* data;                  ///< element (0, 0)
  std::int64_t stride;      ///< elements from one row in memory to the next
  bool transposed = false;  ///< whether rows in memory are columns of the matrix

  std::int64_t row_step() const { return transposed ? 1 : stride; }     ///< from (i, j) to (i + 1, j)
  std::int64_t column_step() const { return transposed ? stride : 1; }  ///< from (i, j) to (i, j + 1)
  /// The part from row i and column j on.
  MatrixView from(std::int64_t i, std::int64_t j) const {
    return {data + i * row_step() + j * column_step(), stride, transposed};
  }
  /// The transpose, over the same memory.
  MatrixView transpose() const { return {data, stride, !transposed}; }
  operator MatrixView<const T>() const { return {data, stride, transposed}; }  ///< for reading only
};

/// The matrix product c = alpha * a b + beta * c, or alpha * a b + row. T is float, double, or bfloat16 with a C of
/// bfloat16 or float: products of bf16 are summed in f32 and rounded once. c must not overlap a or b.
template <class T, class C = T>
struct Product {
  std::int64_t m, n, k;     ///< rows of c, columns of c, and the length of the sums
  MatrixView<const T> a;    ///< [m, k]
  MatrixView<const T> b;    ///< [k, n]
  MatrixView<C> c;          ///< [m, n], not transposed
  Compute<T> alpha{1};      ///< factor of a b
  Compute<T> beta{0};       ///< factor of c; with 0, c is only written, so that it may hold NaN
  const Compute<T>* row{};  ///< [n], added to each row of the result; requires beta = 0
  /// With floats and alpha = 1: splits each operand into this many bf16 terms, 1 to 3, as MatmulPrecision explains.
  /// Ignored in a BatchInvariant scope, where the processor has no unit for it (2 and 3 need AMX), and for operands
  /// that are not finite as bf16. 0: multiplies in f32.
  int bf16_terms = 0;

  /// The tile of c from row i and column j on, of the given size.
  Product tile(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) const {
    Product part = *this;
    part.m = rows;
    part.n = columns;
    part.a = a.from(i, 0);
    part.b = b.from(0, j);
    part.c = c.from(i, j);
    if (row != nullptr) part.row += j;
    return part;
  }
};

}  // namespace braid
