#pragma once
#include <braid/core/product.h>

namespace braid::detail {

/// Computes a product of packed tiles: of bf16, by AMX or AVX512_BF16, or of floats split into `bf16_terms`, by AMX
/// alone. On all threads if `parallel`, else on the calling one; the bits of c depend on k alone. Returns false if a
/// float is not finite as bf16; c is then unchanged unless beta is 0. Requires a kernels::amx::fast_multiply(), alpha =
/// 1, and m, n and k of at least 1.
template <class T, class C>
bool gemm_by_tiles(const Product<T, C>& product, bool parallel);

}  // namespace braid::detail
