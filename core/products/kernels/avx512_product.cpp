#include <algorithm>
#include <cstring>

#include <braid/core/products/kernels/amx-inl.h>
#include <braid/core/products/kernels/amx.h>

#if BRAID_HAS_AMX
HWY_PUSH_ATTRIBUTES(BRAID_AVX512_BF16)
namespace braid::kernels::amx {
namespace {

/// kRows rows, from a line of a group of a on, and up to kVectors * 16 columns of a group of b. Each sum is one chain.
template <int kRows, int kVectors>
BRAID_INLINE void multiply_rows(const PackedProduct& p, const bfloat16* a, const bfloat16* b, std::int64_t columns,
                                const float* from, float* c) {
  __mmask16 masks[kVectors];
  __m512 sums[kRows][kVectors];
  for (int j = 0; j < kVectors; ++j)
    masks[j] = static_cast<__mmask16>((1U << std::min<std::int64_t>(16, columns - 16 * j)) - 1);
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j)
      sums[i][j] = from == nullptr ? _mm512_setzero_ps()
                                   : _mm512_mul_ps(_mm512_set1_ps(p.beta),
                                                   _mm512_maskz_loadu_ps(masks[j], from + i * p.from_stride + 16 * j));
  for (std::int64_t depth = p.k; depth > 0; depth -= kDepth, a += 2 * kSize, b += 2 * kSize) {
    const std::int64_t words = std::min<std::int64_t>(16, (depth + 1) / 2);
    for (std::int64_t word = 0; word < words; ++word) {
      __m512i row[kVectors];
      for (int j = 0; j < kVectors; ++j) row[j] = _mm512_loadu_si512(b + j * kSize + word * kDepth);
      for (int i = 0; i < kRows; ++i) {
        int pair;
        std::memcpy(&pair, a + i * kDepth + 2 * word, sizeof pair);
        __m512i factors = _mm512_set1_epi32(pair);
        asm("" : "+v"(factors));  // Clang 16 crashes where it folds this into the product
        for (int j = 0; j < kVectors; ++j)
          sums[i][j] =
              _mm512_dpbf16_ps(sums[i][j], reinterpret_cast<__m512bh>(factors), reinterpret_cast<__m512bh>(row[j]));
      }
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j) _mm512_mask_storeu_ps(c + i * p.c.stride + 16 * j, masks[j], sums[i][j]);
}

/// The kRows rows of c from row i on, and up to 32 columns from column j on.
template <int kRows>
void multiply_strip(const PackedProduct& p, std::int64_t i, std::int64_t j) {
  const bfloat16* const a = p.a + i / kGroup * packed_size(1, p.k) + i % kGroup / kLines * kSize + i % kLines * kDepth;
  const bfloat16* const b = p.b + j / kGroup * p.b_group;
  const float* const from = p.from == nullptr ? nullptr : p.from + i * p.from_stride + j;
  float* const c = p.c.data + i * p.c.stride + j;
  const std::int64_t columns = std::min(kGroup, p.n - j);
  columns > 16 ? multiply_rows<kRows, 2>(p, a, b, columns, from, c)
               : multiply_rows<kRows, 1>(p, a, b, columns, from, c);
}

}  // namespace

void multiply_by_avx512(const PackedProduct& p) {
  for (std::int64_t j = 0; j < p.n; j += kGroup) {
    std::int64_t i = 0;
    for (; i + 8 <= p.m; i += 8) multiply_strip<8>(p, i, j);
    for (; i + 4 <= p.m; i += 4) multiply_strip<4>(p, i, j);
    for (; i < p.m; ++i) multiply_strip<1>(p, i, j);
  }
}

}  // namespace braid::kernels::amx
HWY_POP_ATTRIBUTES
#endif
