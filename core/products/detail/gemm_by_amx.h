#pragma once
#include <braid/core/product.h>

namespace braid::detail {

/// Computes a product of bf16, or of floats split into `bf16_terms`, by AMX on all threads. The bits of c depend on k
/// only, not on m, n or the number of threads. Returns false if a float is not finite as bf16; c is then unchanged
/// unless beta is 0. Requires InstructionSet::amx, alpha = 1, and m, n and k of at least 1.
template <class T, class C>
bool gemm_by_amx(const Product<T, C>& product);

}  // namespace braid::detail
