#pragma once
#include <optional>

#include <braid/core/tensor.h>

namespace braid {

/// Products of the matrices in the last two axes; leading axes broadcast. a [..., m, k], b [..., k, n] -> [..., m, n].
/// Transposed views are read in place. A vector is a matrix with a row (a) or a column (b) of one: rank 1 is an error.
/// Products of bf16 are added up in f32, and rounded once unless `dtype` asks for f32.
/// Throws ShapeError or DTypeError naming `op`.
Tensor matrix_product(const Tensor& a, const Tensor& b, const char* op = "matmul", std::optional<DType> dtype = {});

/// The same of matrices with `row` [n], of the dtype that products are added up in, added to each row of the result.
Tensor product_plus_row(const Tensor& a, const Tensor& b, const Tensor& row, const char* op = "matmul");

/// `c += a b` for c that nobody shares and that has the product's shape.
void accumulate_product(const Tensor& a, const Tensor& b, Tensor& c, const char* op = "matmul");

}  // namespace braid
