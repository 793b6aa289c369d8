#pragma once

#include <cstdint>

namespace braid {

/// c [m, n] = alpha * op(a) op(b) + beta * c on the calling thread, all row-major.
/// op(a) is [m, k]: a is [m, k] with rows lda apart, or [k, m] if transpose_a; op(b) is [k, n] in the same way.
/// With beta = 0, c is written only, so that it may hold NaN. c must not overlap a or b. T is float or double: float is
/// oneDNN's sgemm on x86-64 unless BatchInvariant, all else the packed product of core/kernels, with the bits of
/// `gemm`.
template <class T>
void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                 const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

/// The same on all threads: c is cut into tiles by the shape alone and each tile is computed by one thread over all of
/// k, so that the bits of c do not depend on the number of threads.
template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

}  // namespace braid
