#include <algorithm>
#include <cstring>

#include <braid/core/products/kernels/amx-inl.h>
#include <braid/core/products/kernels/amx.h>

#if BRAID_HAS_AMX
HWY_PUSH_ATTRIBUTES(BRAID_AVX512_BF16)
namespace braid::kernels::amx {
namespace {

/// beta times up to 16 elements of a row of `from`, from (i, j) on; 0 if it is null.
BRAID_INLINE __m512 load(const PackedProduct& p, std::int64_t i, std::int64_t j, __mmask16 mask) {
  if (p.from == nullptr) return _mm512_setzero_ps();
  return _mm512_mul_ps(_mm512_set1_ps(p.beta), _mm512_maskz_loadu_ps(mask, p.from + i * p.from_stride + j));
}

/// The kRows rows of c from row i on, and up to kVectors * 16 columns from column j on. Each sum is one chain.
template <int kRows, int kVectors>
BRAID_INLINE void multiply_rows(const PackedProduct& p, std::int64_t i, std::int64_t j) {
  const bfloat16* a = p.a + i / kGroup * packed_size(1, p.k) + i % kGroup / kLines * kSize + i % kLines * kDepth;
  const bfloat16* b = p.b + j / kGroup * p.b_group;
  __mmask16 masks[kVectors];
  __m512 sums[kRows * kVectors];
  for (int v = 0; v < kVectors; ++v)
    masks[v] = static_cast<__mmask16>((1U << std::min<std::int64_t>(16, p.n - j - 16 * v)) - 1);
  HWY_UNROLL(16)
  for (int s = 0; s < kRows * kVectors; ++s)
    sums[s] = load(p, i + s / kVectors, j + s % kVectors * 16, masks[s % kVectors]);
  for (std::int64_t depth = p.k; depth > 0; depth -= kDepth, a += 2 * kSize, b += 2 * kSize) {
    const std::int64_t words = std::min<std::int64_t>(16, (depth + 1) / 2);
    for (std::int64_t word = 0; word < words; ++word) {
      __m512i columns[kVectors];
      for (int v = 0; v < kVectors; ++v) columns[v] = _mm512_loadu_si512(b + v * kSize + word * kDepth);
      HWY_UNROLL(8)
      for (int row = 0; row < kRows; ++row) {
        int pair;
        std::memcpy(&pair, a + row * kDepth + 2 * word, sizeof pair);
        __m512i factors = _mm512_set1_epi32(pair);
        asm("" : "+v"(factors));  // Clang 16 crashes where it folds this into the product
        HWY_UNROLL(2)
        for (int v = 0; v < kVectors; ++v) {
          __m512& sum = sums[row * kVectors + v];
          sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(factors), reinterpret_cast<__m512bh>(columns[v]));
        }
      }
    }
  }
  HWY_UNROLL(16)
  for (int s = 0; s < kRows * kVectors; ++s)
    store(p, i + s / kVectors, j + s % kVectors * 16, masks[s % kVectors], sums[s]);
}

/// The kRows rows of c from row i on, and up to kGroup columns from column j on.
template <int kRows>
void multiply_strip(const PackedProduct& p, std::int64_t i, std::int64_t j) {
  p.n - j > 16 ? multiply_rows<kRows, 2>(p, i, j) : multiply_rows<kRows, 1>(p, i, j);
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
