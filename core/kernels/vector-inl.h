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
  HWY_INLINE auto load(auto d, const auto* from) const { return hn::LoadU(d, from); }
  HWY_INLINE auto load(auto d, const bfloat16* from) const {
    return widen(d, load(Halves<decltype(d)>(), reinterpret_cast<const std::uint16_t*>(from)));
  }
  HWY_INLINE void store(auto v, auto d, auto* to) const { hn::StoreU(v, d, to); }
  HWY_INLINE void store(auto v, auto d, bfloat16* to) const {
    store(round_to_halves(d, v), Halves<decltype(d)>(), reinterpret_cast<std::uint16_t*>(to));
  }
  HWY_INLINE auto or_else(auto, auto v, auto) const { return v; }
};

/// Access to the first `count` elements of a vector: the others load as zero, and their memory is not touched.
struct Part {
  std::size_t count;

  template <class D, class T>
  HWY_INLINE hn::Vec<D> load(D d, const T* from) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
    std::copy_n(from, count, lanes);
    return hn::Load(d, lanes);
#else
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
  }
  HWY_INLINE auto load(auto d, const bfloat16* from) const {
    return widen(d, load(Halves<decltype(d)>(), reinterpret_cast<const std::uint16_t*>(from)));
  }
  template <class D, class T>
  HWY_INLINE void store(hn::Vec<D> v, D d, T* to) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    std::copy_n(lanes, count, to);
#else
    hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#endif
  }
  HWY_INLINE void store(auto v, auto d, bfloat16* to) const {
    store(round_to_halves(d, v), Halves<decltype(d)>(), reinterpret_cast<std::uint16_t*>(to));
  }
  /// The first `count` elements of v, then those of `other`.
  HWY_INLINE auto or_else(auto d, auto v, auto other) const { return hn::IfThenElse(hn::FirstN(d, count), v, other); }
};

/// Calls f(i, part) for the vectors of a row of n elements: part is Whole or, for the last, Part.
HWY_INLINE void for_each_vector(auto d, std::int64_t n, auto f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, Whole{});
  if (i < n) f(i, Part{static_cast<std::size_t>(n - i)});
}

/// Rows are summed in the lanes of AVX-512's vectors, whatever those of the target: in as many vectors as make one of
/// 64 bytes. Sums then have the same bits under every instruction set with fused multiply-add.
template <class D>
inline constexpr int kParts = std::max(1, static_cast<int>(64 / sizeof(hn::TFromD<D>) / hn::MaxLanes(D())));

/// Calls f(i, k, part) for the vectors of a row of n elements, where k counts the kParts vectors of each 64 bytes.
template <class D, class F>
HWY_INLINE void for_each_part(D, std::int64_t n, F f) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  std::int64_t i = 0;
  for (; i + kParts<D> * kLanes <= n; i += kParts<D> * kLanes)
    for (int k = 0; k < kParts<D>; ++k) f(i + k * kLanes, k, Whole{});
  for (int k = 0; k < kParts<D>; ++k, i += kLanes) {
    if (i + kLanes <= n)
      f(i, k, Whole{});
    else if (i < n)
      f(i, k, Part{static_cast<std::size_t>(n - i)});
  }
}

/// Combines the vectors v[0] .. v[kCount - 1] to one and its lanes to a scalar, by halves.
template <int kCount, class D, class Combine>
HWY_INLINE hn::TFromD<D> combine_lanes(D d, const hn::Vec<D>* v, Combine combine) {
  if constexpr (kCount > 1) {
    hn::Vec<D> halves[kCount / 2];
    for (int i = 0; i < kCount / 2; ++i) halves[i] = combine(v[i], v[i + kCount / 2]);
    return combine_lanes<kCount / 2>(d, halves, combine);
  }
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kCount == 1 && hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    const hn::Vec<hn::Half<D>> both = combine(hn::LowerHalf(half, *v), hn::UpperHalf(half, *v));
    return combine_lanes<1>(half, &both, combine);
  }
#endif
  return hn::GetLane(*v);
}

/// The sum of the lanes of kCount vectors.
template <int kCount, class D>
HWY_INLINE hn::TFromD<D> sum_lanes(D d, const hn::Vec<D>* v) {
  return combine_lanes<kCount>(d, v, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

/// Combines value(i, part) over the vectors of a row, in chains of vectors that hide the latency of combine(a, b), and
/// then the chains. value must be neutral for elements past the end of the row.
template <class D, class Combine, class Value>
HWY_INLINE hn::TFromD<D> combine_vectors(D d, std::int64_t n, hn::Vec<D> neutral, Combine combine, Value value) {
  constexpr int kChains = 4 * kParts<D>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  hn::Vec<D> chains[kChains];
  for (auto& chain : chains) chain = neutral;
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes)
    for (int k = 0; k < kChains; ++k) chains[k] = combine(chains[k], value(i + k * kLanes, Whole{}));
  if (i < n) {  // through memory: a chain that is chosen at run time is in no register
    HWY_ALIGN hn::TFromD<D> lanes[kChains * kLanes];
    for (int k = 0; k < kChains; ++k) hn::Store(chains[k], d, lanes + k * kLanes);
    for_each_vector(d, n - i, [&](std::int64_t j, auto part) HWY_ATTR {
      hn::Store(combine(hn::Load(d, lanes + j), value(i + j, part)), d, lanes + j);
    });
    for (int k = 0; k < kChains; ++k) chains[k] = hn::Load(d, lanes + k * kLanes);
  }
  return combine_lanes<kChains>(d, chains, combine);
}

/// The sum of value(i, part) over a row; value must be zero for elements past its end.
template <class D, class Value>
HWY_INLINE hn::TFromD<D> sum_vectors(D d, std::int64_t n, Value value) {
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  return combine_vectors(d, n, hn::Zero(d), add, value);
}

/// The largest element of a row, -infinity for an empty one.
template <class D, class T>
HWY_INLINE hn::TFromD<D> max_element(D d, std::int64_t n, const T* x) {
  const auto lowest = hn::Set(d, -std::numeric_limits<hn::TFromD<D>>::infinity());
  const auto max = [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
  return combine_vectors(d, n, lowest, max, [&](std::int64_t i, auto part) HWY_ATTR {
    return part.or_else(d, part.load(d, x + i), lowest);
  });
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

/// `c[0] x^(terms - 1) + .. + c[terms - 1]`
template <class D, class V, std::size_t n>
HWY_INLINE V polynomial(D d, V x, const double (&c)[n], std::size_t terms = n) {
  using T = hn::TFromD<D>;
  V sum = hn::Set(d, static_cast<T>(c[0]));
  for (std::size_t i = 1; i < terms; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, static_cast<T>(c[i])));
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
