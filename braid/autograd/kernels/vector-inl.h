// Walking contiguous rows with vectors of any length, tails included. Compiled once for each SIMD target.
#if defined(BRAID_AUTOGRAD_KERNELS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_AUTOGRAD_KERNELS_VECTOR_INL_H_
#undef BRAID_AUTOGRAD_KERNELS_VECTOR_INL_H_
#else
#define BRAID_AUTOGRAD_KERNELS_VECTOR_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A whole vector's elements.
struct Whole {
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE hn::Vec<D> load(D d, const T* from) const {
    return hn::LoadU(d, from);
  }
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE void store(hn::Vec<D> v, D d, T* to) const {
    hn::StoreU(v, d, to);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> or_else(D, hn::Vec<D> v, hn::Vec<D>) const {
    return v;
  }
};

/// The first `count` elements of a vector; the others are zero and memory behind them is not touched.
struct Part {
  std::size_t count;

  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE hn::Vec<D> load(D d, const T* from) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
    std::copy_n(from, count, lanes);
    return hn::Load(d, lanes);
#else
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
  }
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE void store(hn::Vec<D> v, D d, T* to) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    std::copy_n(lanes, count, to);
#else
    hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#endif
  }
  /// `v` with the elements of `other` behind the first `count`.
  template <class D>
  HWY_INLINE hn::Vec<D> or_else(D d, hn::Vec<D> v, hn::Vec<D> other) const {
    return hn::IfThenElse(hn::FirstN(d, count), v, other);
  }
};

/// Calls f(i, part) for the vectors of a row of n elements: part is Whole or, for the last, Part.
template <class D, class F>
HWY_INLINE void for_each_vector(D d, std::int64_t n, F f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, Whole{});
  if (i < n) f(i, Part{static_cast<std::size_t>(n - i)});
}

template <class D>
HWY_INLINE hn::TFromD<D> sum_lanes(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

template <class D>
HWY_INLINE hn::TFromD<D> max_lanes(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::MaxOfLanes(d, v));
}

/// exp(x) that keeps NaN, which Highway's turns into zero.
template <class D>
HWY_INLINE hn::Vec<D> exp_or_nan(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
