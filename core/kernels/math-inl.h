// Elementary functions of vectors. Included after hwy/foreach_target.h and compiled once for each SIMD target.
//
// As std:: for all arguments, NaN and infinities included, within the errors of docs/precision.md; results of exp and
// softplus below the smallest normal number are 0. Only operations that are exact or correctly rounded on every
// processor, and multiply-adds where they are written: all instruction sets that fuse them give the same bits. Those
// that do not lose the low parts of sums, and so up to an ulp or two.
#if defined(BRAID_CORE_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_MATH_INL_H_
#undef BRAID_CORE_KERNELS_MATH_INL_H_
#else
#define BRAID_CORE_KERNELS_MATH_INL_H_
#endif

#include <cstdint>
#include <numbers>

#include <hwy/highway.h>

#include <braid/core/kernels/exp-inl.h>
#include <braid/core/kernels/log-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

/// The standard normal distribution's function at x, and its density without 1 / sqrt(2 pi).
template <class V>
struct Normal {
  V cdf, gauss;
};

/// In double, to 2^-34 for results in f32 and 2^-57 for those in f64. For z = |x| / sqrt(2) and t = 1 / (1 + z / 4),
/// e^(z^2) erfc(z) / t is a polynomial in u = (126 t - 71) / 55, by interpolation at Chebyshev nodes up to z = 27.5.
template <class T, class D, class V>
HWY_INLINE Normal<V> normal(D d, V x) {
  constexpr double kSingle[] = {7.56841684755e-7,  1.60605775756e-6,  -8.39799767847e-6, -4.45856441495e-5,
                                -3.34822258734e-5, 0.000509793520194, 0.00315157037057,  0.0113560880586,
                                0.0306606931471,   0.0670645649825,   0.123151579503,    0.193423574197,
                                0.262348893791,    0.308417345407};
  constexpr double kTwice[] = {
      1.12058388912728458e-11,   4.59241904140414113e-11,   -1.66218925001656413e-10, -7.01268827484570037e-10,
      1.57318006998417141e-9,    7.93529026555211553e-9,    -1.12415149990335476e-8,  -9.05392917925730421e-8,
      2.03192626727781754e-8,    1.02261936354955371e-6,    1.60168464867216932e-6,   -8.74213709197211076e-6,
      -0.0000446062157282101293, -0.0000332542499134240073, 0.000509815635704110581,  0.00315149183480678771,
      0.0113560788200548057,     0.03066070611934016,       0.0670645666604496468,    0.123151578696269136,
      0.193423574088220013,      0.262348893799651162,      0.308417345407657071};
  const auto set = [d](double value) HWY_ATTR { return hn::Set(d, value); };
  const V t = hn::Div(set(1), hn::MulAdd(hn::Abs(x), set(0.25 / std::numbers::sqrt2), set(1)));
  const V u = hn::MulAdd(t, set(126.0 / 55), set(-71.0 / 55));
  V bell, series;
  if constexpr (sizeof(T) == 4) {
    bell = exp_to_one(d, hn::Mul(hn::Mul(x, x), set(-0.5)));
    series = polynomial(d, u, kSingle);
  } else {
    bell = gauss(d, x);
    series = polynomial(d, u, kTwice);
  }
  const V beyond = hn::Mul(hn::Mul(hn::Mul(set(0.5), bell), t), series);
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), beyond, hn::Sub(set(1), beyond)), bell};
}

/// f(d, x...) for doubles, and for floats as doubles, of which a vector has half as many.
template <class D, class F, class... V>
HWY_INLINE hn::Vec<D> in_double(D d, F f, V... x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return f(d, x...);
  } else {
#if HWY_TARGET == HWY_SCALAR
    const hn::Rebind<double, D> wide;
    return hn::DemoteTo(d, f(wide, hn::PromoteTo(wide, x)...));
#else
    const hn::Half<D> half;
    const hn::Rebind<double, decltype(half)> wide;
    const auto low = hn::DemoteTo(half, f(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x))...));
    return hn::Combine(d, hn::DemoteTo(half, f(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x))...)), low);
#endif
  }
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
