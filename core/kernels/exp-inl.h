// The exponential of vectors and what is made of it, as math-inl.h says.
#if defined(BRAID_CORE_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_EXP_INL_H_
#undef BRAID_CORE_KERNELS_EXP_INL_H_
#else
#define BRAID_CORE_KERNELS_EXP_INL_H_
#endif

#include <iterator>
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

/// 1 + r + w
template <class D, class V>
HWY_INLINE Sum<V> mantissa(D d, const SplitExp<V>& e) {
  const V one = hn::Set(d, hn::TFromD<D>{1}), high = hn::Add(one, e.r);
  return {high, hn::Add(hn::Add(hn::Sub(one, high), e.r), e.w)};
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

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BRAID_CORE_KERNELS_EXP_INL_H_
