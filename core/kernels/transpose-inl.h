// Transposes of squares in registers. Included after hwy/foreach_target.h and compiled once for each SIMD target.
#if defined(BRAID_CORE_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_TRANSPOSE_INL_H_
#undef BRAID_CORE_KERNELS_TRANSPOSE_INL_H_
#else
#define BRAID_CORE_KERNELS_TRANSPOSE_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

#include <braid/core/bfloat16.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

/// How many columns for_each_column loads at a time: those of 128-bit vectors (4 floats, 2 doubles, 8 bfloat16), but of
/// a cache line of bfloat16 with AVX-512. Rows a power of two apart drive each other's lines out of the cache.
template <class T>
inline constexpr std::int64_t kSquare = HWY_TARGET == HWY_SCALAR ? 1
                                        : sizeof(T) == 2 ? (hn::MaxLanes(hn::ScalableTag<float>()) == 16 ? 32 : 8)
                                                         : 16 / sizeof(T);

#if HWY_TARGET == HWY_SCALAR
template <class D, class T>
HWY_INLINE void for_each_column(D d, const T* from, std::int64_t, auto f) {
  f(0, Whole{}.load(d, from));
}
#else
/// A vector of 128-bit blocks that are `step` apart in memory.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* x, std::int64_t step) {
  if constexpr (hn::MaxLanes(d) <= static_cast<std::size_t>(kSquare<T>)) {
    return hn::LoadU(d, x);
  } else {
    const hn::Half<D> half;
    constexpr auto kBlocks = static_cast<std::int64_t>(hn::MaxLanes(half)) / kSquare<T>;
    return hn::Combine(d, load_blocks(half, x + kBlocks * step, step), load_blocks(half, x, step));
  }
}

/// Calls f(j, words j of each 128-bit block) of four rows.
template <class D, class V>
HWY_INLINE void for_each_word(D d, const V* rows, auto f) {
  const hn::Repartition<double, D> pairs;
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, rows[0], rows[1]));  // a0 b0 a1 b1
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, rows[2], rows[3]));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[2], rows[3]));
  f(0, hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)));
  f(1, hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)));
  f(2, hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)));
  f(3, hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)));
}

/// Calls f(j, column j of `from`) for j < kSquare: one row per lane, `step` apart.
template <class D>
HWY_INLINE void for_each_column(D d, const float* from, std::int64_t step, auto f) {
  hn::Vec<D> rows[4];
  for (int r = 0; r < 4; ++r) rows[r] = load_blocks(d, from + r * step, 4 * step);
  for_each_word(d, rows, f);
}

template <class D>
HWY_INLINE void for_each_column(D d, const double* from, std::int64_t step, auto f) {
  const auto a = load_blocks(d, from, 2 * step), b = load_blocks(d, from + step, 2 * step);
  f(0, hn::InterleaveLower(d, a, b));
  f(1, hn::InterleaveUpper(d, a, b));
}

/// bfloat16 as floats, which they are in front of zeros.
template <class D>
HWY_INLINE void for_each_column(D d, const bfloat16* x, std::int64_t step, auto f) {
  const hn::Repartition<std::uint16_t, D> halves;
  const hn::RebindToUnsigned<D> bits;
  constexpr int kBlocks = kSquare<bfloat16> / 8;
  hn::Vec<D> blocks[kBlocks][4];
  const auto* from = reinterpret_cast<const std::uint16_t*>(x);
  for (int r = 0; r < 4; ++r, from += step) {
    if constexpr (kBlocks == 1) {
      blocks[0][r] = hn::BitCast(d, load_blocks(halves, from, 4 * step));
    } else {
      const auto a = hn::LoadU(halves, from), b = hn::LoadU(halves, from + 4 * step);
      const auto c = hn::LoadU(halves, from + 8 * step), e = hn::LoadU(halves, from + 12 * step);
      const auto ac_low = hn::BitCast(d, hn::ConcatLowerLower(halves, c, a));  // blocks a0 a1 c0 c1
      const auto ac_high = hn::BitCast(d, hn::ConcatUpperUpper(halves, c, a));
      const auto be_low = hn::BitCast(d, hn::ConcatLowerLower(halves, e, b));
      const auto be_high = hn::BitCast(d, hn::ConcatUpperUpper(halves, e, b));
      blocks[0][r] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(be_low), ac_low);
      blocks[1][r] = hn::OddEvenBlocks(be_low, hn::SwapAdjacentBlocks(ac_low));
      blocks[2][r] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(be_high), ac_high);
      blocks[3][r] = hn::OddEvenBlocks(be_high, hn::SwapAdjacentBlocks(ac_high));
    }
  }
  for (int block = 0; block < kBlocks; ++block)
    for_each_word(d, blocks[block], [&](int j, auto word) HWY_ATTR {  // of two bfloat16
      f(8 * block + 2 * j, hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(bits, word))));
      f(8 * block + 2 * j + 1, hn::And(word, hn::BitCast(d, hn::Set(bits, 0xffff0000))));
    });
}
#endif

/// to [j, i] = from [i, j]; rows are `from_step` and `to_step` apart.
template <class T>
HWY_INLINE void transpose_square(const T* from, std::int64_t from_step, T* to, std::int64_t to_step) {
  const hn::CappedTag<T, kSquare<T>> d;
  for_each_column(d, from, from_step, [&](int j, auto column) HWY_ATTR { hn::StoreU(column, d, to + j * to_step); });
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
