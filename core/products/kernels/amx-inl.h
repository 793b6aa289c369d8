#pragma once
// Compiler support for AMX, which Highway 1.0 does not have.
#include <hwy/base.h>

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
