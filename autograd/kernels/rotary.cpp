#include <braid/autograd/kernels/rotary.h>

#include <algorithm>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/rotary.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/parallel.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// All heads of one position; `direction` is 1 or, back, -1. The two elements of each pair of a head are i and
/// pairs + i, or else 2 i and 2 i + 1.
template <bool kHalves, class T>
void rotate_heads(const Rotation<T>& by, std::int64_t position, T direction, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d), pairs = by.pairs;
  const T *cosine = by.cosine + position * pairs, *sine = by.sine + position * pairs;
  const auto turn = [&](auto d, std::int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> a, b;
    if constexpr (kHalves) {
      a = hn::LoadU(d, x + i);
      b = hn::LoadU(d, x + pairs + i);
    } else {
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
    }
    const auto c = hn::LoadU(d, cosine + i), s = hn::Mul(hn::Set(d, direction), hn::LoadU(d, sine + i));
    const auto turned_a = hn::NegMulAdd(b, s, hn::Mul(a, c)), turned_b = hn::MulAdd(a, s, hn::Mul(b, c));
    if constexpr (kHalves) {
      hn::StoreU(turned_a, d, y + i);
      hn::StoreU(turned_b, d, y + pairs + i);
    } else {
      hn::StoreInterleaved2(turned_a, turned_b, d, y + 2 * i);
    }
  };
  for (std::int64_t head = 0; head < by.heads; ++head) {
    std::copy_n(x, by.first, y);
    x += by.first, y += by.first;
    std::int64_t i = 0;
    for (; i + lanes <= pairs; i += lanes) turn(d, i);
    for (; i < pairs; ++i) turn(hn::CappedTag<T, 1>(), i);  // the same instructions: bits do not depend on the place
    const std::int64_t rest = by.depth - by.first;
    std::copy(x + 2 * pairs, x + rest, y + 2 * pairs);
    x += rest, y += rest;
  }
}

template <class T>
void rotate(const Rotation<T>& by, bool back, std::int64_t batch, const T* x, T* y) {
  const std::int64_t width = by.heads * by.depth;
  const auto rotate_row = by.halves ? rotate_heads<true, T> : rotate_heads<false, T>;
  detail::parallel_for_each(batch * by.length, width, 8192, [&](std::int64_t row) {
    rotate_row(by, row % by.length, back ? T{-1} : T{1}, x + row * width, y + row * width);
  });
}

Tables<RotaryKernel> tables() { return {rotate<float>, rotate<double>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<RotaryKernel> rotary_kernels())
