// Vector mathematics for the kernels, compiled once for each instruction set: include it after hwy/foreach_target.h.

#if defined(BRAID_AUTOGRAD_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_AUTOGRAD_KERNELS_MATH_INL_H_
#undef BRAID_AUTOGRAD_KERNELS_MATH_INL_H_
#else
#define BRAID_AUTOGRAD_KERNELS_MATH_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Highway's functions assume arguments inside their ranges. These give what std:: gives for all arguments, NaN and
// infinities included, within 3 ulp.

template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  using T = hn::TFromD<D>;
  // Beyond these the result is 0 or infinite, and Highway's power of two would wrap around.
  const V low = hn::Set(d, T{sizeof(T) == 4 ? -110 : -1010}), high = hn::Set(d, T{sizeof(T) == 4 ? 90 : 720});
  const V y = hn::Exp(d, hn::Min(hn::Max(x, low), high));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D, class V>
HWY_INLINE V log(D d, V x) {
  const V zero = hn::Zero(d), infinity = hn::Inf(d);
  const V special = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), hn::IfThenElse(hn::Lt(x, zero), hn::NaN(d), x));
  const auto regular = hn::And(hn::Gt(x, zero), hn::Lt(x, infinity));
  return hn::IfThenElse(regular, hn::Log(d, x), special);
}

template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  using T = hn::TFromD<D>;
  const V limit = hn::Set(d, T{sizeof(T) == 4 ? 10 : 20});  // beyond it the result rounds to +-1
  const V y = hn::Tanh(d, hn::Min(hn::Max(x, hn::Neg(limit)), limit));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// x moved into [low, high]; NaN stays.
template <class D, class V>
HWY_INLINE V clamp(D d, V x, hn::TFromD<D> low, hn::TFromD<D> high) {
  const V l = hn::Set(d, low), h = hn::Set(d, high);
  return hn::IfThenElse(hn::Lt(x, l), l, hn::IfThenElse(hn::Gt(x, h), h, x));
}

/// `1 / (1 + exp(-x))`
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>{1});
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

/// The first `n` elements, n less than a vector; the other lanes are zero. Nothing behind them is read.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_first(D d, const T* x, std::int64_t n) {
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  std::copy_n(x, n, lanes);
  return hn::Load(d, lanes);
}

/// Stores the first `n` lanes.
template <class D, class T>
HWY_INLINE void store_first(D d, hn::Vec<D> v, T* y, std::int64_t n) {
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  std::copy_n(lanes, n, y);
}

/// `y[i] = f(d, x[i]...)` for n elements.
template <class F, class T, class... In>
HWY_INLINE void transform(F f, std::int64_t n, T* HWY_RESTRICT y, const In* HWY_RESTRICT... x) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)...), d, y + i);
  if (i < n) store_first(d, f(d, load_first(d, x + i, n - i)...), y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#endif  // BRAID_AUTOGRAD_KERNELS_MATH_INL_H_
