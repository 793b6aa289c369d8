// Elementary functions of vectors, for autograd's elementwise functions and softmax and the maps of mhc. Included after
// hwy/foreach_target.h and compiled once for each SIMD target.
#if defined(BRAID_CORE_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_MATH_INL_H_
#undef BRAID_CORE_KERNELS_MATH_INL_H_
#else
#define BRAID_CORE_KERNELS_MATH_INL_H_
#endif

#include <cstdint>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

// The results of std:: for all arguments, NaN and infinities included, within 3 ulp; results of exp below the smallest
// normal number are 0. Highway's functions assume arguments inside their ranges, and its Exp takes twice the time.

template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  const V high = hn::Set(d, static_cast<hn::TFromD<D>>(sizeof(hn::TFromD<D>) == 4 ? 88.72283 : 709.782712893384));
  const V y = hn::IfThenElse(hn::Gt(x, high), hn::Inf(d), exp_to_one(d, x));  // accurate up to `high`
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
HWY_INLINE V log1p(D d, V x) {
  const V pole = hn::Set(d, hn::TFromD<D>{-1}), infinity = hn::Inf(d);
  const V special = hn::IfThenElse(hn::Eq(x, pole), hn::Neg(infinity), hn::IfThenElse(hn::Lt(x, pole), hn::NaN(d), x));
  const auto regular = hn::And(hn::Gt(x, pole), hn::Lt(x, infinity));
  return hn::IfThenElse(regular, hn::Log1p(d, x), special);
}

template <class D, class V>
HWY_INLINE V expm1(D d, V x) {
  const V high = hn::Set(d, hn::TFromD<D>{40});  // beyond it 1 is lost in the rounding of exp
  const V y = hn::Expm1(d, hn::Min(hn::Max(x, hn::Neg(high)), high));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Gt(x, high), exp(d, x), y));
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

/// `y[i] = f(d, x[i]...)` for n elements.
template <class F, class T, class... In>
HWY_INLINE void transform(F f, std::int64_t n, T* y, const In*... x) {
  const hn::ScalableTag<Compute<T>> d;
  for_each_vector(d, n,
                  [&](std::int64_t i, auto part) HWY_ATTR { part.store(f(d, part.load(d, x + i)...), d, y + i); });
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BRAID_CORE_KERNELS_MATH_INL_H_
