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
#include <iterator>
#include <limits>
#include <numbers>

#include <hwy/highway.h>

#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

/// x moved into [low, high]; NaN stays.
template <class D, class V>
HWY_INLINE V clamp(D d, V x, hn::TFromD<D> low, hn::TFromD<D> high) {
  const V l = hn::Set(d, low), h = hn::Set(d, high);
  return hn::IfThenElse(hn::Lt(x, l), l, hn::IfThenElse(hn::Gt(x, h), h, x));
}

/// A number as a rounded value and its error.
template <class V>
struct Sum {
  V high, low;
};

/// `x + low = q log(2) + r + fine`, where r, at most log(2) / 2, is exact, and fine small.
template <class V>
struct Reduced {
  V power, r, fine;  // 2^q times `unit`, itself a power of two that keeps it in range, or 0 for the bits of q alone
};

template <class D, class V>
HWY_INLINE Reduced<V> reduce(D d, V x, V low, hn::TFromD<D> unit) {
  using T = hn::TFromD<D>;
  using C = ExpConstants<T>;
  const hn::RebindToSigned<D> di;
  const auto set = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  // A multiply-add is exact with all digits of log(2): both of its terms are multiples of its first part's last digit.
  // A product is, with a part that ends in zeros.
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr double kShort = kSingle ? kLn2High : 6.93147180369123816490e-1;
  constexpr double kShortRest = kSingle ? kLn2Low : 1.90821492927058770002e-10;
  constexpr double kHigh = HWY_NATIVE_FMA ? static_cast<T>(std::numbers::ln2) : kShort;
  constexpr double kRest = kSingle ? std::numbers::ln2 - kHigh : 2.3190468138462996e-17;
  constexpr double kLow = HWY_NATIVE_FMA ? kRest : kShortRest;
  const V shifted = hn::MulAdd(x, set(kLog2E), set(C::kMagic)), q = hn::Sub(shifted, set(C::kMagic));
  const auto exponent = hn::ShiftLeft<C::kMantissa>(hn::BitCast(di, shifted));
  return {.power = hn::BitCast(d, hn::Add(exponent, hn::BitCast(di, set(unit)))),
          .r = hn::NegMulAdd(q, set(kHigh), x),
          .fine = hn::NegMulAdd(q, set(kLow), low)};
}

/// `e^(x + low) = power (1 + r + w)`, with w about r^2 / 2.
template <class V>
struct SplitExp {
  V power, r, w;
};

template <class D, class V>
HWY_INLINE SplitExp<V> split_exp(D d, V x, V low, hn::TFromD<D> unit = 1) {
  const auto [power, exact, fine] = reduce(d, x, low, unit);
  const V r = hn::Add(exact, fine);
  return {power, exact, hn::MulAdd(hn::Mul(r, r), polynomial(d, r, ExpConstants<hn::TFromD<D>>::kTail), fine)};
}

template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  const auto [power, r, fine] = reduce(d, x, hn::Zero(d), T{0});
  const V one = hn::Set(d, T{1}), square = hn::Mul(r, r), tail = polynomial(d, r, ExpConstants<T>::kTail);
  const V line = hn::Add(one, r), lost = hn::Add(hn::Sub(one, line), r);
  const V high = hn::MulAdd(square, tail, line), low = hn::Add(lost, hn::MulAdd(square, tail, hn::Sub(line, high)));
  // e^fine - 1: with multiply-adds fine is so small that its square does not count.
  const V more = HWY_NATIVE_FMA ? fine : hn::MulAdd(hn::Mul(fine, hn::Set(d, T{0.5})), fine, fine);
  const V m = hn::Add(high, hn::MulAdd(more, high, low));
  const V y = hn::BitCast(d, hn::Add(hn::BitCast(di, m), hn::BitCast(di, power)));
  const V end = hn::Set(d, static_cast<T>(sizeof(T) == 4 ? 88.72283 : 709.782712893384));
  const V finite = hn::IfThenElse(hn::Lt(x, hn::Set(d, ExpConstants<T>::kLowest)), hn::Zero(d), y);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Gt(x, end), hn::Inf(d), finite));
}

template <class D, class V>
HWY_INLINE V expm1(D d, V x) {
  using T = hn::TFromD<D>;
  const V half = hn::Set(d, T{0.5});
  const auto [power, r, w] = split_exp(d, clamp(d, x, -40, sizeof(T) == 4 ? 89 : 710), hn::Zero(d), T{0.5});
  const V whole = hn::Sub(power, half), lost = hn::Sub(hn::Sub(power, whole), half);
  const V high = hn::MulAdd(power, r, whole), low = hn::MulAdd(power, r, hn::Sub(whole, high));
  const V y = hn::Add(high, hn::Add(low, hn::MulAdd(power, w, lost)));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, T{0x1p-60})), x, hn::Add(y, y));
}

/// tanh(x) = (e^2x - 1) / (e^2x + 1), whose quotient a multiplication by its remainder corrects.
template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  using T = hn::TFromD<D>;
  const V half = hn::Set(d, T{0.5}), a = hn::Abs(x), limit = hn::Set(d, T{20});  // beyond it the result rounds to +-1
  const V near = hn::IfThenElse(hn::Gt(a, limit), limit, a);
  const auto [power, r, fine] = reduce(d, hn::Add(near, near), hn::Zero(d), T{0.5});
  constexpr auto& kTail = ExpConstants<T>::kTail;
  const V twice = hn::Add(r, r), square = hn::Mul(hn::Mul(half, r), r);  // e^r - 1 = r + r^2 / 2 + r^3 (..)
  const V start = hn::Add(r, square), first = hn::Add(hn::Sub(r, start), square);
  const V tail = hn::MulAdd(hn::Mul(twice, square), polynomial(d, r, kTail, std::size(kTail) - 1),
                            hn::MulSub(hn::Mul(half, r), r, square));
  const V rest = hn::Add(start, tail), second = hn::Add(hn::Sub(start, rest), tail);
  const V rest_low = hn::Add(hn::Add(first, second), hn::MulAdd(fine, rest, fine));
  const auto plus = [&, power = power](V number) HWY_ATTR {
    const V whole = hn::Add(power, number), lost = hn::Add(hn::Sub(power, whole), number);
    const V sum = hn::MulAdd(power, rest, whole), error = hn::MulAdd(power, rest, hn::Sub(whole, sum));
    return Sum<V>{sum, hn::Add(error, hn::MulAdd(power, rest_low, lost))};
  };
  const Sum<V> over = plus(hn::Neg(half)), under = plus(half);
  const V inverse = hn::Div(hn::Set(d, T{1}), under.high), y = hn::Mul(over.high, inverse);
  const V remainder = hn::NegMulAdd(y, under.low, hn::Add(hn::NegMulAdd(y, under.high, over.high), over.low));
  return hn::CopySign(hn::MulAdd(remainder, inverse, y), x);
}

/// `1 / (1 + e^v)` in units of kGateUnit, so that its digits last as long as those of its product with a number, for v
/// from -60, where it is 1, to kGateEnd, where the product is 0.
template <class T>
constexpr T kGateUnit = static_cast<T>(sizeof(T) == 4 ? 0x1p-32 : 0x1p-128);
template <class T>
constexpr T kGateEnd = sizeof(T) == 4 ? 110 : 760;

template <class D, class V>
HWY_INLINE Sum<V> gate(D d, Sum<V> v) {
  using T = hn::TFromD<D>;
  const V unit = hn::Set(d, kGateUnit<T>), one = hn::Set(d, T{1});
  const auto [power, r, w] = split_exp(d, v.high, v.low, kGateUnit<T>);
  const V rest = hn::Add(r, w), whole = hn::Add(power, unit), lost = hn::Add(hn::Sub(power, whole), unit);
  const V sum = hn::MulAdd(power, rest, whole), error = hn::Add(hn::MulAdd(power, rest, hn::Sub(whole, sum)), lost);
  const V y = hn::Div(one, sum), remainder = hn::NegMulAdd(y, error, hn::NegMulAdd(y, sum, one));
  return {y, hn::Mul(y, remainder)};
}

/// The result of gate, rounded.
template <class D, class V>
HWY_INLINE V rounded(D d, Sum<V> gate) {
  return hn::Mul(hn::Add(gate.high, gate.low), hn::Set(d, kGateUnit<hn::TFromD<D>>));
}

/// `1 / (1 + exp(-x))`
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  return rounded(d, gate(d, Sum<V>{clamp(d, hn::Neg(x), -60, kGateEnd<hn::TFromD<D>>), hn::Zero(d)}));
}

/// exp(-x^2 / 2) for |x| <= 40. The rounding error of x^2 would become a relative error of the result, so that x is
/// split into a multiple of 1/16, whose square is exact, and the rest.
template <class D, class V>
HWY_INLINE V gauss(D d, V x) {
  using T = hn::TFromD<D>;
  const V coarse = hn::Mul(hn::Trunc(hn::Mul(x, hn::Set(d, T{16}))), hn::Set(d, T{1} / 16)), half = hn::Set(d, T{-0.5});
  const V rest = hn::Mul(hn::Mul(hn::Sub(x, coarse), hn::Add(x, coarse)), half);
  return hn::Mul(exp_to_one(d, hn::Mul(hn::Mul(coarse, coarse), half)), exp_to_one(d, rest));
}

/// For x = 2^k (1 + f) and 1 + f from sqrt(1/2) to sqrt(2): k log(2) + log(1 + f) + c. With s = f / (2 + f), log(1 + f)
/// is f - f^2 / 2 + s (f^2 / 2 + s^2 (..)) with the series of fdlibm's e_log.c and e_logf.c.
template <class D, class V>
HWY_INLINE V log_of_parts(D d, V k, V f, V c) {
  using T = hn::TFromD<D>;
  const auto choose = [d](double single, double twice)
                          HWY_ATTR { return hn::Set(d, static_cast<T>(sizeof(T) == 4 ? single : twice)); };
  // Exact, since this part of log(2) ends in zeros.
  const V whole = hn::Mul(k, choose(6.9313812256e-1, 6.93147180369123816490e-1)), sum = hn::Add(whole, f);
  const V lost = hn::Add(hn::Sub(whole, sum), f), half = hn::Mul(hn::Set(d, T{0.5}), f);
  const V high = hn::NegMulAdd(half, f, sum), bend = hn::NegMulAdd(half, f, hn::Sub(sum, high));
  const V s = hn::Div(f, hn::Add(hn::Set(d, T{2}), f)), z = hn::Mul(s, s);
  V series;
  if constexpr (sizeof(T) == 4)
    series = polynomial(d, z, {0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693});
  else
    series =
        polynomial(d, z,
                   {1.479819860511658591e-1, 1.531383769920937332e-1, 1.818357216161805012e-1, 2.222219843214978396e-1,
                    2.857142874366239149e-1, 3.999999999940941908e-1, 6.666666666666735130e-1});
  const V low = hn::MulAdd(k, choose(9.0580006145e-6, 1.90821492927058770002e-10), c);
  const V rest = hn::MulAdd(s, hn::MulAdd(z, series, hn::Mul(half, f)), hn::Add(low, bend));
  return hn::Add(high, hn::Add(rest, lost));
}

/// A normal x > 0 as 2^k m with m from sqrt(1/2) to sqrt(2), and the bits of 2^k.
template <class D, class V>
struct SplitLog {
  using T = hn::TFromD<D>;
  using Bits = hn::Vec<hn::RebindToUnsigned<D>>;
  V k, m;
  Bits power;

  HWY_INLINE SplitLog(D d, V x) {
    constexpr int kMantissa = ExpConstants<T>::kMantissa;
    const hn::RebindToUnsigned<D> du;
    const auto bits = [=](T value) HWY_ATTR { return hn::BitCast(du, hn::Set(d, value)); };
    const T integer = static_cast<T>(std::uint64_t{1} << kMantissa), bias = sizeof(T) == 4 ? 127 : 1023;
    const Bits root = bits(1 / std::numbers::sqrt2_v<T>), shifted = hn::Add(hn::BitCast(du, x), hn::Sub(bits(1), root));
    const Bits exponent = hn::ShiftRight<kMantissa>(shifted);
    power = hn::ShiftLeft<kMantissa>(exponent);
    k = hn::Sub(hn::BitCast(d, hn::Or(exponent, bits(integer))), hn::Set(d, integer + bias));
    m = hn::BitCast(d, hn::Add(hn::Sub(shifted, power), root));
  }
};

template <class D, class V>
HWY_INLINE V log(D d, V x) {
  using T = hn::TFromD<D>;
  const V zero = hn::Zero(d), infinity = hn::Inf(d);
  const auto small = hn::Lt(x, hn::Set(d, std::numeric_limits<T>::min()));
  const SplitLog<D, V> parts(d, hn::IfThenElse(small, hn::Mul(x, hn::Set(d, T{0x1p54})), x));
  const V k = hn::Sub(parts.k, hn::IfThenElseZero(small, hn::Set(d, T{54})));
  const V special = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), hn::IfThenElse(hn::Lt(x, zero), hn::NaN(d), x));
  const auto regular = hn::And(hn::Gt(x, zero), hn::Lt(x, infinity));
  return hn::IfThenElse(regular, log_of_parts(d, k, hn::Sub(parts.m, hn::Set(d, T{1})), zero), special);
}

/// The logarithm of a number.
template <class T>
HWY_INLINE T log_of(T x) {
  const hn::CappedTag<T, 1> d;
  return hn::GetLane(log(d, hn::Set(d, x)));
}

/// With what 1 + x rounds off added to the logarithm.
template <class D, class V>
HWY_INLINE V log1p(D d, V x) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  const V one = hn::Set(d, T{1}), pole = hn::Neg(one), infinity = hn::Inf(d), u = hn::Add(one, x);
  const V error = hn::Sub(hn::Min(x, one), hn::Sub(u, hn::Max(x, one)));
  const SplitLog<D, V> parts(d, u);
  const auto near = hn::Eq(parts.k, hn::Zero(d));
  const V f = hn::IfThenElse(near, x, hn::Sub(parts.m, one));
  const auto largest = hn::BitCast(du, hn::Set(d, static_cast<T>(sizeof(T) == 4 ? 0x1p127 : 0x1p1023)));
  const V inverse = hn::BitCast(d, hn::Sub(largest, parts.power));  // 2^-k
  const auto counts = hn::AndNot(near, hn::Lt(x, hn::Set(d, T{0x1p60})));
  const V c = hn::IfThenElseZero(counts, hn::Mul(error, inverse));
  const V y = hn::CopySign(log_of_parts(d, parts.k, f, hn::NegMulAdd(c, f, c)), x);
  const V special = hn::IfThenElse(hn::Eq(x, pole), hn::Neg(infinity), hn::IfThenElse(hn::Lt(x, pole), hn::NaN(d), x));
  const auto regular = hn::And(hn::Gt(x, pole), hn::Lt(x, infinity));
  return hn::IfThenElse(regular, y, special);
}

/// `log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)`, with the rounding error of the power.
template <class D, class V>
HWY_INLINE V softplus(D d, V x) {
  using T = hn::TFromD<D>;
  const V zero = hn::Zero(d), one = hn::Set(d, T{1}), half = hn::Set(d, T{0.5});
  const V lowest = hn::Set(d, ExpConstants<T>::kLowest), away = hn::Neg(hn::Abs(x));
  const auto [power, r, w] = split_exp(d, hn::IfThenElse(hn::Lt(away, lowest), lowest, away), zero);
  const V line = hn::Add(one, r), rest = hn::Add(hn::Add(hn::Sub(one, line), r), w);  // 1 + r + w
  const V rounded = hn::Add(line, rest), error = hn::Add(hn::Sub(line, rounded), rest);
  const V e = hn::Mul(power, rounded), low = hn::Mul(power, error);
  const auto big = hn::Gt(e, hn::Set(d, static_cast<T>(0.41421356)));  // 1 + e is from sqrt(2) to 2
  const V less = hn::Sub(e, one), lost = hn::Add(hn::Sub(e, hn::Add(less, one)), low);
  const V f = hn::IfThenElse(big, hn::Mul(half, less), e), c = hn::IfThenElse(big, hn::Mul(half, lost), low);
  const V y = log_of_parts(d, hn::IfThenElseZero(big, one), f, hn::NegMulAdd(c, f, c));
  return hn::IfThenElse(hn::Lt(x, lowest), zero, hn::Add(hn::Max(x, zero), y));
}

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
