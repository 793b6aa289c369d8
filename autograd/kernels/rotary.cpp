#include <braid/autograd/kernels/rotary.h>

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/autograd/kernels/rotary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/core/parallel.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// All heads of one position; `direction` is 1 or, for the inverse, -1.
template <class T>
void rotate_heads(const Rotation<T>& by, std::int64_t position, T direction, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d), pairs = by.pairs;
  const T *cosine = by.cosine + position * pairs, *sine = by.sine + position * pairs;
  const auto sign = hn::Set(d, direction);
  for (std::int64_t head = 0; head < by.heads; ++head, x += 2 * pairs, y += 2 * pairs) {
    std::int64_t i = 0;
    for (; i + lanes <= pairs; i += lanes) {
      hn::Vec<decltype(d)> a, b;
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
      const auto c = hn::LoadU(d, cosine + i), s = hn::Mul(sign, hn::LoadU(d, sine + i));
      hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d, y + 2 * i);
    }
    for (; i < pairs; ++i) {
      const T a = x[2 * i], b = x[2 * i + 1], c = cosine[i], s = direction * sine[i];
      y[2 * i] = a * c - b * s;
      y[2 * i + 1] = a * s + b * c;
    }
  }
}

template <class T>
void rotate(const Rotation<T>& by, bool inverse, std::int64_t batch, const T* x, T* y) {
  const std::int64_t width = by.heads * 2 * by.pairs;
  const std::int64_t block = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(width, 1));
  parallel_for(batch * by.length, block, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t row = begin; row < end; ++row)
      rotate_heads(by, row % by.length, inverse ? T{-1} : T{1}, x + row * width, y + row * width);
  });
}

template <class T>
constexpr RotaryKernels<T> kTable = {.rotate = rotate<T>};

Tables<RotaryKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::kernels {

HWY_EXPORT(tables);

Tables<RotaryKernels> rotary_kernels() { return HWY_DYNAMIC_DISPATCH(tables)(); }

}  // namespace braid::kernels
#endif
