#pragma once
#include <cstdint>

namespace braid::detail {

/// The product that `gemm` makes, of floats by products of bf16: a factor is the sum of `parts` bf16 of 8 bits each,
/// and of their products those are added up that are more than 2^(-8 parts) of the whole: 1, 3 or 6 for 1, 2 or 3
/// parts. Three hold all of a float, so that the result is as exact as f32's own. Returns false for more than one part
/// without AMX, and when a factor has a number that is not finite as bf16: infinity minus infinity is none; c is as it
/// was then, unless beta is 0. Parts below 2^-126 count as zero where a unit for bf16 makes the products.
bool gemm_in_parts(int parts, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                   const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                   std::int64_t ldc, const float* row = nullptr);

}  // namespace braid::detail
