#pragma once
// Compiler support for AMX, which Highway 1.0 does not have, and the store of its kernels.
#include <cstdint>

#include <hwy/base.h>

#include <braid/core/products/kernels/amx.h>

#ifdef __x86_64__
#define BRAID_HAS_AMX 1
#include <immintrin.h>
#else
#define BRAID_HAS_AMX 0
#endif

#if HWY_COMPILER_GCC_ACTUAL  // false warnings about its own intrinsics, GCC bug 105593
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define BRAID_AVX512_BF16 "avx512f,avx512bw,avx512vl,avx512bf16"
#define BRAID_AMX "amx-tile,amx-bf16," BRAID_AVX512_BF16
#define BRAID_AMX_LAMBDA __attribute__((target(BRAID_AMX)))
#define BRAID_INLINE __attribute__((always_inline)) inline

#if BRAID_HAS_AMX
HWY_PUSH_ATTRIBUTES(BRAID_AVX512_BF16)
namespace braid::kernels::amx {

/// Writes a row of up to 16 sums, from (i, j) on.
BRAID_INLINE void store(const PackedProduct& p, std::int64_t i, std::int64_t j, __mmask16 mask, __m512 sums) {
  if (p.rounded.data == nullptr) return _mm512_mask_storeu_ps(p.c.data + i * p.c.stride + j, mask, sums);
  _mm256_mask_storeu_epi16(p.rounded.data + i * p.rounded.stride + j, mask,
                           reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sums)));
}

}  // namespace braid::kernels::amx
HWY_POP_ATTRIBUTES
#endif
