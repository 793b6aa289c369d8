// Logarithms of vectors, as math-inl.h says.
#if defined(BRAID_CORE_KERNELS_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_LOG_INL_H_
#undef BRAID_CORE_KERNELS_LOG_INL_H_
#else
#define BRAID_CORE_KERNELS_LOG_INL_H_
#endif

#include <cstdint>
#include <limits>
#include <numbers>

#include <hwy/highway.h>

#include <braid/core/kernels/exp-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

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
  const auto split = split_exp(d, hn::IfThenElse(hn::Lt(away, lowest), lowest, away), zero);
  const auto sum = mantissa(d, split);
  const V rounded = hn::Add(sum.high, sum.low), error = hn::Add(hn::Sub(sum.high, rounded), sum.low);
  const V e = hn::Mul(split.power, rounded), low = hn::Mul(split.power, error);
  const auto big = hn::Gt(e, hn::Set(d, static_cast<T>(0.41421356)));  // 1 + e is from sqrt(2) to 2
  const V less = hn::Sub(e, one), lost = hn::Add(hn::Sub(e, hn::Add(less, one)), low);
  const V f = hn::IfThenElse(big, hn::Mul(half, less), e), c = hn::IfThenElse(big, hn::Mul(half, lost), low);
  const V y = log_of_parts(d, hn::IfThenElseZero(big, one), f, hn::NegMulAdd(c, f, c));
  return hn::IfThenElse(hn::Lt(x, lowest), zero, hn::Add(hn::Max(x, zero), y));
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BRAID_CORE_KERNELS_LOG_INL_H_
