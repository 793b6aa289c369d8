#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <braid/core/products/kernels/amx-inl.h>
#include <braid/core/products/kernels/amx.h>

#if BRAID_HAS_AMX
HWY_PUSH_ATTRIBUTES(BRAID_AMX)
namespace braid::kernels::amx {
namespace {

/// to [j, i] = from [i, j], of 16 x 16 words of 4 bytes; the rows of `from` are `step` bytes apart.
void transpose(const void* from, std::int64_t step, void* to) {
  __m512i x[16], y[16];
  for (int i = 0; i < 16; ++i) x[i] = _mm512_loadu_si512(static_cast<const std::byte*>(from) + i * step);
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      x[i + 2 * j] = _mm512_unpacklo_epi64(y[i + j], y[i + j + 2]);
      x[i + 2 * j + 1] = _mm512_unpackhi_epi64(y[i + j], y[i + j + 2]);
    }
  }
  // x[4 i + j] has, in its quarter q, words 4 q + j of rows 4 i to 4 i + 3.
  std::byte* const rows = static_cast<std::byte*>(to);
  for (int j = 0; j < 4; ++j) {
    const __m512i even_low = _mm512_shuffle_i32x4(x[j], x[4 + j], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(x[j], x[4 + j], 0xdd);
    const __m512i even_high = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0x88);
    const __m512i odd_high = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0xdd);
    _mm512_storeu_si512(rows + 64 * j, _mm512_shuffle_i32x4(even_low, even_high, 0x88));
    _mm512_storeu_si512(rows + 64 * (4 + j), _mm512_shuffle_i32x4(odd_low, odd_high, 0x88));
    _mm512_storeu_si512(rows + 64 * (8 + j), _mm512_shuffle_i32x4(even_low, even_high, 0xdd));
    _mm512_storeu_si512(rows + 64 * (12 + j), _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd));
  }
}

/// The elements of a row of a tile: those in the lower halves of its words, and those in the upper halves.
struct Row {
  __m512 low, high;
};

BRAID_INLINE __m512i upper_half() { return _mm512_set1_epi32(static_cast<int>(0xffff0000)); }

/// Rounds to 8 significant bits, ties away from zero. The result is a float.
BRAID_INLINE __m512i round(__m512 x) {
  return _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000)), upper_half());
}

BRAID_INLINE __m512i join(__m512i low, __m512i high) {
  return _mm512_ternarylogic_epi32(upper_half(), high, _mm512_srli_epi32(low, 16), 0xea);  // upper_half & high | low
}

/// Rounds to bf16, ties to even, and joins.
BRAID_INLINE __m512i round_and_join(Row x) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(x.high, x.low)));
}

/// Makes `check` NaN where x is not finite.
BRAID_INLINE void check_finite(Row x, __m512& check) {
  check = _mm512_fmadd_ps(x.low, _mm512_setzero_ps(), _mm512_fmadd_ps(x.high, _mm512_setzero_ps(), check));
}

/// Splits a row and stores it in the tile of each term.
template <int kTerms>
BRAID_INLINE void split(Row x, __m512& check, bfloat16* to) {
  for (int term = 0; term < kTerms - 1; ++term, to += kSize) {
    const __m512i low = round(x.low), high = round(x.high);
    _mm512_storeu_si512(to, join(low, high));
    x.low = _mm512_sub_ps(x.low, _mm512_castsi512_ps(low));
    x.high = _mm512_sub_ps(x.high, _mm512_castsi512_ps(high));
    if (term == 0) check_finite(x, check);  // infinity leaves NaN
  }
  const __m512i last = kTerms == 3 ? join(_mm512_castps_si512(x.low), _mm512_castps_si512(x.high))  // 8 bits are left
                                   : round_and_join(x);
  _mm512_storeu_si512(to, last);
  if (kTerms == 1) check_finite({_mm512_castsi512_ps(_mm512_slli_epi32(last, 16)), _mm512_castsi512_ps(last)}, check);
}

/// Packs a tile for each term. Word i of a row holds elements i and i + 16.
template <int kTerms>
bool pack_tile(Side side, MatrixView<const float> x, bfloat16* to) {
  const float *low = x.data, *high = x.data + 16 * x.column_step();
  std::int64_t step = x.column_step() == 1 ? x.row_step() : x.column_step();
  alignas(64) float transposed[2][16][16];
  // A row of a tile is a row of x on the left side, and two columns on the right.
  if ((x.column_step() == 1) == (side == Side::right)) {
    transpose(low, 4 * step, transposed[0]);
    transpose(high, 4 * step, transposed[1]);
    low = transposed[0][0], high = transposed[1][0];
    step = 16;
  }
  __m512 check = _mm512_setzero_ps();
  for (int i = 0; i < 16; ++i)
    split<kTerms>({_mm512_loadu_ps(low + i * step), _mm512_loadu_ps(high + i * step)}, check, to + i * kDepth);
  return _mm512_cmpunord_ps_mask(check, check) == 0;
}

/// The same of bf16: word i of a row holds elements 2 i and 2 i + 1.
template <int kTerms>
bool pack_tile(Side side, MatrixView<const bfloat16> x, bfloat16* to) {
  if (x.column_step() == 1) {
    if (side == Side::right) {
      transpose(x.data, 2 * x.row_step(), to);
    } else {
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kDepth, _mm512_loadu_si512(x.data + i * x.row_step()));
    }
    return true;
  }
  for (int i = 0; i < 16; ++i) {
    const bfloat16* const pair = x.data + 2 * i * x.column_step();
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair + x.column_step()));
    const __m512i words =
        _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
    _mm512_storeu_si512(to + i * kDepth, words);
  }
  if (side == Side::left) transpose(to, 64, to);
  return true;
}

/// Packs a tile at an edge, padded with zeros.
template <int kTerms, class T>
bool pack_edge(Side side, MatrixView<const T> x, std::int64_t lines, std::int64_t depth, bfloat16* to) {
  alignas(64) T whole[kSize] = {};
  const MatrixView<const T> copy{whole, x.transposed ? kLines : kDepth, x.transposed};
  for (std::int64_t i = 0; i < lines; ++i)
    for (std::int64_t p = 0; p < depth; ++p)
      whole[i * copy.row_step() + p * copy.column_step()] = x.data[i * x.row_step() + p * x.column_step()];
  return pack_tile<kTerms>(side, copy, to);
}

/// Rounds a tile of the left side: word i of a row holds elements 2 i and 2 i + 1. Zero beyond `depth`; lines past
/// `lines` may be left as they are.
void round_tile(MatrixView<const float> x, std::int64_t lines, std::int64_t depth, bfloat16* to) {
  const auto load = [&](std::int64_t row, std::int64_t first, std::int64_t end) BRAID_AMX_LAMBDA {
    const auto count = std::clamp<std::int64_t>(end - first, 0, 16);
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), x.data + row * x.stride + first);
  };
  if (!x.transposed) {
    for (std::int64_t i = 0; i < lines; ++i)
      _mm512_storeu_si512(to + i * kDepth,
                          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(load(i, 16, depth), load(i, 0, depth))));
    return;
  }
  for (std::int64_t i = 0; i < 16; ++i) {
    const auto halves = [&](std::int64_t row) BRAID_AMX_LAMBDA {
      const __m512 x_row = row < depth ? load(row, 0, lines) : _mm512_setzero_ps();
      return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x_row)));
    };
    _mm512_storeu_si512(to + i * kDepth, _mm512_or_si512(halves(2 * i), _mm512_slli_epi32(halves(2 * i + 1), 16)));
  }
  transpose(to, 64, to);
}

/// Fetches what comes next into the second-level cache: the next strip of rows, or the columns two tiles on.
template <class T>
BRAID_INLINE void prefetch(MatrixView<const T> x, std::int64_t first, std::int64_t p, std::int64_t lines,
                           std::int64_t depth) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  if (x.column_step() == 1) {
    for (std::int64_t i = first + kLines; i < std::min(lines, first + 2 * kLines); ++i)
      for (std::int64_t j = p; j < p + kDepth; j += kLine) __builtin_prefetch(x.data + i * x.stride + j, 0, 2);
  } else {
    for (std::int64_t j = p + 2 * kDepth; j < std::min(depth, p + 3 * kDepth); ++j)
      for (std::int64_t i = first; i < std::min(lines, first + 2 * kGroup); i += kLine)
        __builtin_prefetch(x.data + j * x.stride + i, 0, 2);
  }
}

/// Packs rows one strip after the other: 16 rows, or the 64 that share cache lines where x is transposed.
template <int kTerms, class T>
bool pack_lines(Side side, MatrixView<const T> x, std::int64_t lines, std::int64_t depth, bfloat16* to) {
  const std::int64_t group = packed_size(kTerms, depth);
  bool finite = true;
  const auto pack_at = [&](std::int64_t i, std::int64_t p) BRAID_AMX_LAMBDA {
    bfloat16* const tile = to + i / kGroup * group + (p / kDepth * 2 + i / kLines % 2) * kTerms * kSize;
    const std::int64_t some_lines = std::min(kLines, lines - i), some_depth = std::min(kDepth, depth - p);
    if (some_lines == kLines && some_depth == kDepth)
      finite &= pack_tile<kTerms>(side, x.from(i, p), tile);
    else
      finite &= pack_edge<kTerms>(side, x.from(i, p), some_lines, some_depth, tile);
  };
  const std::int64_t strip = x.column_step() == 1 ? kLines : 2 * kGroup;
  for (std::int64_t first = 0; first < lines; first += strip)
    for (std::int64_t p = 0; p < depth; p += kDepth) {
      prefetch(x, first, p, lines, depth);
      for (std::int64_t i = first; i < std::min(lines, first + strip); i += kLines) pack_at(i, p);
    }
  return finite;
}

}  // namespace

template <class T>
bool pack(Side side, int terms, MatrixView<const T> x, std::int64_t lines, std::int64_t depth, bfloat16* to) {
  if constexpr (std::is_same_v<T, float>) {
    if (terms == 3) return pack_lines<3>(side, x, lines, depth, to);
    if (terms == 2) return pack_lines<2>(side, x, lines, depth, to);
  }
  return pack_lines<1>(side, x, lines, depth, to);
}

template bool pack(Side, int, MatrixView<const float>, std::int64_t, std::int64_t, bfloat16*);
template bool pack(Side, int, MatrixView<const bfloat16>, std::int64_t, std::int64_t, bfloat16*);

void pack_rounded(MatrixView<const float> x, std::int64_t lines, std::int64_t depth, bfloat16* to) {
  for (std::int64_t i = 0; i < lines; i += kLines)
    for (std::int64_t p = 0; p < depth; p += kDepth)
      round_tile(x.from(i, p), std::min(kLines, lines - i), std::min(kDepth, depth - p),
                 to + i / kGroup * packed_size(1, depth) + (p / kDepth * 2 + i / kLines % 2) * kSize);
}

}  // namespace braid::kernels::amx
HWY_POP_ATTRIBUTES

#endif
