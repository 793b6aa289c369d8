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

/// The side of a square whose rows are 128-bit vectors: 4 floats, 2 doubles, 8 bfloat16.
template <class T>
inline constexpr std::int64_t kSquare = HWY_TARGET == HWY_SCALAR ? 1 : 16 / sizeof(T);

#if HWY_TARGET == HWY_SCALAR
template <class D, class T>
HWY_INLINE void load_columns(D d, const T* from, std::int64_t, hn::Vec<D>* to) {
  to[0] = Whole{}.load(d, from);
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

/// to[j] = column j of `from`, j < kSquare: one row per lane, `step` apart.
template <class D>
HWY_INLINE void load_columns(D d, const float* from, std::int64_t step, hn::Vec<D>* to) {
  const hn::Repartition<double, D> pairs;
  const auto a = load_blocks(d, from, 4 * step), b = load_blocks(d, from + step, 4 * step);
  const auto c = load_blocks(d, from + 2 * step, 4 * step), e = load_blocks(d, from + 3 * step, 4 * step);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));  // a0 b0 a1 b1
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  to[0] = hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low));
  to[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low));
  to[2] = hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high));
  to[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high));
}

template <class D>
HWY_INLINE void load_columns(D d, const double* from, std::int64_t step, hn::Vec<D>* to) {
  const auto a = load_blocks(d, from, 2 * step), b = load_blocks(d, from + step, 2 * step);
  to[0] = hn::InterleaveLower(d, a, b);
  to[1] = hn::InterleaveUpper(d, a, b);
}

/// bfloat16 as floats, which they are in front of zeros.
template <class D>
HWY_INLINE void load_columns(D d, const bfloat16* x, std::int64_t step, hn::Vec<D>* to) {
  const hn::Repartition<std::uint16_t, D> halves;
  const hn::RebindToUnsigned<D> pairs;
  const auto* from = reinterpret_cast<const std::uint16_t*>(x);
  const auto a = load_blocks(halves, from, 4 * step), b = load_blocks(halves, from + step, 4 * step);
  const auto c = load_blocks(halves, from + 2 * step, 4 * step), e = load_blocks(halves, from + 3 * step, 4 * step);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(halves, a, b));  // a0 b0 a1 b1 ..
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(halves, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(halves, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(halves, c, e));
  const auto put = [&](int column, auto two) HWY_ATTR {  // a0 b0 c0 e0 a1 b1 c1 e1
    const auto both = hn::BitCast(halves, two), zero = hn::Zero(halves);
    to[column] = hn::BitCast(d, hn::InterleaveLower(halves, zero, both));
    to[column + 1] = hn::BitCast(d, hn::InterleaveUpper(halves, zero, both));
  };
  put(0, hn::InterleaveLower(pairs, ab_low, ce_low));
  put(2, hn::InterleaveUpper(pairs, ab_low, ce_low));
  put(4, hn::InterleaveLower(pairs, ab_high, ce_high));
  put(6, hn::InterleaveUpper(pairs, ab_high, ce_high));
}
#endif

/// to [j, i] = from [i, j]; rows are `from_step` and `to_step` apart.
template <class T>
HWY_INLINE void transpose_square(const T* from, std::int64_t from_step, T* to, std::int64_t to_step) {
  const hn::CappedTag<T, kSquare<T>> d;
  hn::Vec<decltype(d)> columns[kSquare<T>];
  load_columns(d, from, from_step, columns);
  for (std::int64_t j = 0; j < kSquare<T>; ++j) hn::StoreU(columns[j], d, to + j * to_step);
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
