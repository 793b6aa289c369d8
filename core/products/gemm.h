#pragma once

#include <cstdint>

#include <braid/core/bfloat16.h>

namespace braid {

/// c [m, n] = alpha * op(a) op(b) + beta * c on the calling thread, all row-major.
/// op(a) is [m, k]: a is [m, k] with rows lda apart, or [k, m] if transpose_a; op(b) is [k, n] in the same way.
/// With beta = 0, c is written only, so that it may hold NaN. c must not overlap a or b. T and C are float, double, or
/// bfloat16 with a C of bfloat16 or float: products of bf16 are added up in f32, and rounded once.
/// On x86-64, float is oneDNN's product unless BatchInvariant, as is bfloat16 where the processor has faster products
/// of bf16 (see bf16_products); all else is the packed product of core/kernels, with the bits of `gemm`.
template <class T, class C = T>
void gemm_serial(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, Compute<T> alpha,
                 const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Compute<T> beta, C* c, std::int64_t ldc);

/// The same on all threads: c is cut into tiles by the shape alone and each tile is computed by one thread over all of
/// k, so that the bits of c do not depend on the number of threads. By AMX, which makes those of bfloat16 with sides of
/// at least 32, they do not depend on tiles either. With beta = 0, a `row` [n] is added to each of c's.
template <class T, class C = T>
void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, Compute<T> alpha,
          const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Compute<T> beta, C* c, std::int64_t ldc,
          const Compute<T>* row = nullptr);

/// What computes products of bf16 here: "AMX", "AVX512_BF16", or "f32", which takes the time of f32 products: also on
/// Intel's processors without AMX, whose AVX512_BF16 is slower than that.
const char* bf16_products();

}  // namespace braid
