#pragma once
#include <cstdint>

#include <braid/core/products/kernels/packed_product.h>

namespace braid::detail {

/// The product that `gemm` makes, without alpha, by AMX: of bfloat16, or of floats that are split in `parts` as
/// `gemm_in_parts` says. The bits of c depend on k only: neither on the number of threads nor on m and n. Returns false
/// when a float is not finite as bf16; c is as it was then, unless beta is 0. kernels::amx::is_available() has to be
/// true, and m, n and k at least 1.
template <class T, class C>
bool gemm_by_amx(int parts, const kernels::PackedProduct<T, C>& product, const float* row);

}  // namespace braid::detail
