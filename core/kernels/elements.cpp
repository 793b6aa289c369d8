#include <braid/core/kernels/elements.h>

#define HWY_TARGET_INCLUDE "braid/core/kernels/elements.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class From, class To>
void convert(const From* x, To* y, std::int64_t n) {
  const hn::ScalableTag<float> d;
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR { part.store(part.load(d, x + i), d, y + i); });
}

void add(const bfloat16* x, bfloat16* y, std::int64_t n) {
  const hn::ScalableTag<float> d;
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    part.store(hn::Add(part.load(d, y + i), part.load(d, x + i)), d, y + i);
  });
}

bool round_finite(const float* x, bfloat16* y, std::int64_t n) {
  const hn::ScalableTag<float> d;
  auto check = hn::Zero(d);  // NaN once something is not finite
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto nearest = round_to_halves(d, part.load(d, x + i));
    part.store(nearest, Halves<decltype(d)>(), reinterpret_cast<std::uint16_t*>(y + i));
    const auto rounded = widen(d, nearest);
    check = hn::Add(check, hn::Sub(rounded, rounded));
  });
  return sum_lanes<1>(d, &check) == 0;
}

struct Split {
  std::uint32_t low, high;
  explicit Split(std::uint64_t bits)
      : low(static_cast<std::uint32_t>(bits)), high(static_cast<std::uint32_t>(bits >> 32)) {}
};

/// The lower and upper 32 bits of factor * x in each lane.
template <class V>
struct WideProduct {
  V low, high;

  template <class D>
  HWY_INLINE WideProduct(D d, std::uint32_t factor, V x) {
    const auto f = hn::Set(d, factor);
    low = hn::Mul(x, f);
#if HWY_TARGET == HWY_SCALAR
    high = hn::Set(d, static_cast<std::uint32_t>((std::uint64_t{factor} * hn::GetLane(x)) >> 32));
#else
    const hn::RepartitionToWide<D> pairs;
    const auto even = hn::MulEven(x, f),
               odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(pairs, x))), f);
    high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
#endif
  }
};

/// The first word of each index; `low` and `high` hold the halves of the indices.
template <class D, class V>
HWY_INLINE V philox(D d, Split key, Split draw, V low, V high) {
  V c[4] = {low, high, hn::Set(d, draw.low), hn::Set(d, draw.high)};
  for (int round = 0; round < 10; ++round) {
    const WideProduct<V> a(d, 0xD2511F53, c[0]), b(d, 0xCD9E8D57, c[2]);
    c[0] = hn::Xor(hn::Xor(b.high, c[1]), hn::Set(d, key.low));
    c[1] = b.low;
    c[2] = hn::Xor(hn::Xor(a.high, c[3]), hn::Set(d, key.high));
    c[3] = a.low;
    key.low += 0x9E3779B9;   // golden ratio
    key.high += 0xBB67AE85;  // sqrt(3) - 1
  }
  return c[0];
}

void uniform(std::uint64_t key, std::uint64_t draw, std::uint64_t first, std::int64_t n, float* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const Split index(first + static_cast<std::uint64_t>(i));
    const auto low = hn::Iota(du, index.low);
    const auto carry = hn::Lt(low, hn::Set(du, index.low));
    const auto high = hn::IfThenElse(carry, hn::Set(du, index.high + 1), hn::Set(du, index.high));
    const auto bits = hn::ShiftRight<8>(philox(du, Split(key), Split(draw), low, high));
    const auto whole = hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<decltype(d)>(), bits));
    part.store(hn::Mul(whole, hn::Set(d, 0x1p-24F)), d, y + i);
  });
}

ElementKernels tables() {
  return {.widen = convert<bfloat16, float>,
          .round = convert<float, bfloat16>,
          .round_finite = round_finite,
          .add = add,
          .uniform = uniform};
}

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, ElementKernels element_kernels())
