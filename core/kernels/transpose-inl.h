// The transpose of squares of one 128-bit vector a row, of which packing of matrices is made. Compiled once for each
// SIMD target.
#if defined(BRAID_CORE_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_TRANSPOSE_INL_H_
#undef BRAID_CORE_KERNELS_TRANSPOSE_INL_H_
#else
#define BRAID_CORE_KERNELS_TRANSPOSE_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The side of a square: 4 floats, 2 doubles.
template <class T>
inline constexpr std::int64_t kSquare = HWY_TARGET == HWY_SCALAR ? 1 : 16 / sizeof(T);

#if HWY_TARGET == HWY_SCALAR
template <class T>
void transpose_square(const T* from, std::int64_t, T* to, std::int64_t) {
  *to = *from;
}
#else
/// to [j, i] = from [i, j]; rows are `from_step` and `to_step` apart.
HWY_INLINE void transpose_square(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
  const hn::FixedTag<float, 4> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_step);
  const auto c = hn::LoadU(d, from + 2 * from_step), e = hn::LoadU(d, from + 3 * from_step);
  const auto ab_low = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b);  // a0 b0 a1 b1, a2 b2 a3 b3
  const auto ce_low = hn::InterleaveLower(d, c, e), ce_high = hn::InterleaveUpper(d, c, e);
  hn::StoreU(hn::ConcatLowerLower(d, ce_low, ab_low), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, ce_low, ab_low), d, to + to_step);
  hn::StoreU(hn::ConcatLowerLower(d, ce_high, ab_high), d, to + 2 * to_step);
  hn::StoreU(hn::ConcatUpperUpper(d, ce_high, ab_high), d, to + 3 * to_step);
}

HWY_INLINE void transpose_square(const double* from, std::int64_t from_step, double* to, std::int64_t to_step) {
  const hn::FixedTag<double, 2> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_step);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + to_step);
}
#endif

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
