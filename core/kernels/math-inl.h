// Elementary functions of vectors. Included after hwy/foreach_target.h and compiled once for each SIMD target.
#if defined(BRAID_CORE_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_MATH_INL_H_
#undef BRAID_CORE_KERNELS_MATH_INL_H_
#else
#define BRAID_CORE_KERNELS_MATH_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <numbers>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

// As std:: for all arguments, NaN and infinities included, within 3 ulp; results of exp below the smallest normal
// number are 0. Highway's functions assume arguments in their range, and its Exp takes twice the time.

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

/// c[0] x^(n - 1) + .. + c[n - 1]
template <class D, class V, std::size_t n>
HWY_INLINE V polynomial(D d, V x, const double (&c)[n]) {
  using T = hn::TFromD<D>;
  V sum = hn::Set(d, static_cast<T>(c[0]));
  for (std::size_t i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, static_cast<T>(c[i])));
  return sum;
}

/// exp(-a^2) for a from 0 to 30. The rounding error of a^2 would become a relative error of the result, so that a is
/// split into a multiple of 1/16, whose square is exact, and the rest.
template <class D, class V>
HWY_INLINE V exp_of_minus_square(D d, V a) {
  using T = hn::TFromD<D>;
  const V coarse = hn::Mul(hn::Trunc(hn::Mul(a, hn::Set(d, T{16}))), hn::Set(d, T{1} / 16));
  const V rest = hn::Mul(hn::Sub(a, coarse), hn::Add(a, coarse));
  return hn::Mul(exp_to_one(d, hn::Neg(hn::Mul(coarse, coarse))), exp_to_one(d, hn::Neg(rest)));
}

/// erfc(x), which Highway does not have, by the rational approximations of Cody (Math. Comp. 23, 1969) for |x| up to
/// 0.46875, up to 4 and beyond; the error is some ulp, and for large x that of exp. NaN stays NaN; results below the
/// smallest normal number may be 0.
template <class D, class V>
HWY_NOINLINE V erfc(D d, V x) {
  using T = hn::TFromD<D>;
  const auto set = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto ratio = [d](V at, const auto& p, const auto& q)
                         HWY_ATTR { return hn::Div(polynomial(d, at, p), polynomial(d, at, q)); };
  const V a = clamp(d, hn::Abs(x), 0, 30), square = hn::Mul(a, a), inverse = hn::Div(set(1), square);

  constexpr double kNearP[] = {1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2,
                               3.77485237685302021e2, 3.20937758913846947e3};
  constexpr double kNearQ[] = {1, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
                               2.84423683343917062e3};
  const V near = hn::NegMulAdd(x, ratio(square, kNearP, kNearQ), set(1));

  constexpr double kMiddleP[] = {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594,
                                 6.61191906371416295e1,  2.98635138197400131e2,  8.81952221241769090e2,
                                 1.71204761263407058e3,  2.05107837782607147e3,  1.23033935479799725e3};
  constexpr double kMiddleQ[] = {1,
                                 1.57449261107098347e1,
                                 1.17693950891312499e2,
                                 5.37181101862009858e2,
                                 1.62138957456669019e3,
                                 3.29079923573345963e3,
                                 4.36261909014324716e3,
                                 3.43936767414372164e3,
                                 1.23033935480374942e3};
  const V middle = ratio(a, kMiddleP, kMiddleQ);

  constexpr double kFarP[] = {1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
                              1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4};
  constexpr double kFarQ[] = {1,
                              2.56852019228982242,
                              1.87295284992346047,
                              5.27905102951428412e-1,
                              6.05183413124413191e-2,
                              2.33520497626869185e-3};
  const V far = hn::Div(hn::NegMulAdd(inverse, ratio(inverse, kFarP, kFarQ), set(std::numbers::inv_sqrtpi)), a);

  const V beyond = hn::Mul(exp_of_minus_square(d, a), hn::IfThenElse(hn::Gt(a, set(4)), far, middle));
  const V outside = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(set(2), beyond), beyond);
  return hn::IfThenElse(hn::Le(a, set(0.46875)), near, outside);
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
