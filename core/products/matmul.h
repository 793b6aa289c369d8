#pragma once
#include <optional>

#include <braid/core/tensor.h>

namespace braid {

/// Products of the matrices in the last two axes; leading axes broadcast. a [..., m, k], b [..., k, n] -> [..., m, n].
/// Transposed views are read in place. bf16 is summed in f32, and rounded once unless `dtype` is f32. Vectors have to
/// be given as matrices, [1, k] or [k, 1]. Throws ShapeError, also for rank 1, or DTypeError naming `op`.
Tensor matrix_product(const Tensor& a, const Tensor& b, const char* op = "matmul", std::optional<DType> dtype = {});

/// a b + row: a [m, k], b [k, n], row [n] -> [m, n], where row has compute_dtype(a.dtype()). Throws ShapeError or
/// DTypeError naming `op`.
Tensor product_plus_row(const Tensor& a, const Tensor& b, const Tensor& row, const char* op = "matmul");

/// `c += a b` for a [..., m, k], b [..., k, n] and a contiguous c [..., m, n] of one dtype. Throws ShapeError or
/// DTypeError naming `op`, Error if c's storage is shared.
void accumulate_product(const Tensor& a, const Tensor& b, Tensor& c, const char* op = "matmul");

}  // namespace braid
