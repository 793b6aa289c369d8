// Loops over contiguous rows with vectors of any length, tails included, for the kernels of autograd, nn and mhc.
// Included after hwy/foreach_target.h and compiled once for each SIMD target.
#if defined(BRAID_CORE_KERNELS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_VECTOR_INL_H_
#undef BRAID_CORE_KERNELS_VECTOR_INL_H_
#else
#define BRAID_CORE_KERNELS_VECTOR_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <hwy/highway.h>

#include <braid/core/bfloat16.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The vector type of the upper halves of a vector of floats.
template <class D>
using Halves = hn::Rebind<std::uint16_t, D>;

/// bfloat16 as floats.
template <class D>
HWY_INLINE hn::Vec<D> widen(D d, hn::Vec<Halves<D>> halves) {
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), halves)));
}

/// Floats as bfloat16, rounded to nearest even as bfloat16 does it: the same bits on every processor, denormals too.
template <class D>
HWY_INLINE hn::Vec<Halves<D>> round_to_halves(D, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto nearest = hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), last);
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  const auto rounded = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, nearest);
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) >= 8) {  // shift and narrow in one step
    const auto halves = hn::BitCast(hn::Repartition<std::uint16_t, D>(), rounded);
    return hn::LowerHalf(hn::ConcatOdd(hn::DFromV<decltype(halves)>(), halves, halves));
  }
#endif
  return hn::DemoteTo(Halves<D>(), hn::BitCast(hn::RebindToSigned<D>(), hn::ShiftRight<16>(rounded)));
}

/// Access to all elements of a vector. Elements in memory have the vector's type or, for floats, may be bfloat16.
struct Whole {
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE hn::Vec<D> load(D d, const T* from) const {
    return hn::LoadU(d, from);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const bfloat16* from) const {
    return widen(d, load(Halves<D>(), reinterpret_cast<const std::uint16_t*>(from)));
  }
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE void store(hn::Vec<D> v, D d, T* to) const {
    hn::StoreU(v, d, to);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, bfloat16* to) const {
    store(round_to_halves(d, v), Halves<D>(), reinterpret_cast<std::uint16_t*>(to));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> or_else(D, hn::Vec<D> v, hn::Vec<D>) const {
    return v;
  }
};

/// Access to the first `count` elements of a vector: the others load as zero, and their memory is not touched.
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
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const bfloat16* from) const {
    return widen(d, load(Halves<D>(), reinterpret_cast<const std::uint16_t*>(from)));
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
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, bfloat16* to) const {
    store(round_to_halves(d, v), Halves<D>(), reinterpret_cast<std::uint16_t*>(to));
  }
  /// The first `count` elements of v, then those of `other`.
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

/// Combines value(i, part) over the vectors of a row, in four chains that hide the latency of combine(a, b).
/// value must be neutral for elements past the end of the row.
template <class D, class Combine, class Value>
HWY_INLINE hn::Vec<D> combine_vectors(D d, std::int64_t n, hn::Vec<D> neutral, Combine combine, Value value) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = neutral, b = neutral, c = neutral, e = neutral;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = combine(a, value(i, Whole{}));
    b = combine(b, value(i + lanes, Whole{}));
    c = combine(c, value(i + 2 * lanes, Whole{}));
    e = combine(e, value(i + 3 * lanes, Whole{}));
  }
  for_each_vector(d, n - i, [&](std::int64_t j, auto part) HWY_ATTR { a = combine(a, value(i + j, part)); });
  return combine(combine(a, b), combine(c, e));
}

template <class D>
HWY_INLINE hn::TFromD<D> sum_lanes(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

/// The sum of value(i, part) over a row; value must be zero for elements past its end.
template <class D, class Value>
HWY_INLINE hn::TFromD<D> sum_vectors(D d, std::int64_t n, Value value) {
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  return sum_lanes(d, combine_vectors(d, n, hn::Zero(d), add, value));
}

/// The largest element of a row, -infinity for an empty one.
template <class D, class T>
HWY_INLINE hn::TFromD<D> max_element(D d, std::int64_t n, const T* x) {
  const auto lowest = hn::Set(d, -std::numeric_limits<hn::TFromD<D>>::infinity());
  const auto max = [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
  const auto largest = combine_vectors(d, n, lowest, max, [&](std::int64_t i, auto part) HWY_ATTR {
    return part.or_else(d, part.load(d, x + i), lowest);
  });
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

/// For e^x = 2^q e^r with x = q log(2) + r, |r| <= log(2) / 2: adding 1.5 * 2^(mantissa bits) rounds to q and leaves it
/// in the lowest bits; the first part of log(2) ends in zeros, so that its product with q is exact; e^r is 1 + r + r^2
/// (kTail), for doubles its Taylor polynomial.
template <class T>
struct ExpConstants {
  static constexpr int kMantissa = 23;
  static constexpr T kMagic = 0x1.8p23;
  static constexpr T kLowest = static_cast<T>(-87.3365);  // below it results are not normal
  static constexpr double kTail[] = {1.98827315e-4, 1.39262135e-3, 8.33332087e-3, 4.16665544e-2, 1.0 / 6, 1.0 / 2};
};
template <>
struct ExpConstants<double> {
  static constexpr int kMantissa = 52;
  static constexpr double kMagic = 0x1.8p52;
  static constexpr double kLowest = -708.396;
  static constexpr double kTail[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                     1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                     1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
};
inline constexpr double kLog2E = 1.442695040888963407;
inline constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723212e-6;

/// c[0] x^(n - 1) + .. + c[n - 1]
template <class D, class V, std::size_t n>
HWY_INLINE V polynomial(D d, V x, const double (&c)[n]) {
  using T = hn::TFromD<D>;
  V sum = hn::Set(d, static_cast<T>(c[0]));
  for (std::size_t i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, static_cast<T>(c[i])));
  return sum;
}

/// exp(x) for x <= 1, for softmax: NaN stays NaN, results below the smallest normal number are zero. Error below 1 unit
/// in the last place.
template <class D>
HWY_INLINE hn::Vec<D> exp_to_one(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using C = ExpConstants<T>;
  const hn::RebindToSigned<D> di;
  const auto magic = hn::Set(d, C::kMagic), one = hn::Set(d, T{1});
  const auto shifted = hn::MulAdd(x, hn::Set(d, static_cast<T>(kLog2E)), magic), q = hn::Sub(shifted, magic);
  const auto r =
      hn::NegMulAdd(q, hn::Set(d, static_cast<T>(kLn2Low)), hn::NegMulAdd(q, hn::Set(d, static_cast<T>(kLn2High)), x));
  const auto y = hn::MulAdd(hn::MulAdd(polynomial(d, r, C::kTail), r, one), r, one);
  const auto exponent = hn::ShiftLeft<C::kMantissa>(hn::BitCast(di, shifted));
  const auto scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, y), exponent));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, C::kLowest)), hn::Zero(d), scaled);
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
