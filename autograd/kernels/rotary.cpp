#include <braid/autograd/kernels/rotary.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/autograd/kernels/rotary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void turn(const Rotation<T>& by, T direction, std::int64_t heads, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d);
  const auto sign = hn::Set(d, direction);
  for (std::int64_t head = 0; head < heads; ++head, x += 2 * by.pairs, y += 2 * by.pairs) {
    std::int64_t i = 0;
    for (; i + lanes <= by.pairs; i += lanes) {
      hn::Vec<decltype(d)> a, b;
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
      const auto c = hn::LoadU(d, by.cosine + i), s = hn::Mul(sign, hn::LoadU(d, by.sine + i));
      hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d, y + 2 * i);
    }
    for (; i < by.pairs; ++i) {
      const T a = x[2 * i], b = x[2 * i + 1], c = by.cosine[i], s = direction * by.sine[i];
      y[2 * i] = a * c - b * s;
      y[2 * i + 1] = a * s + b * c;
    }
  }
}

void turn_f32(const Rotation<float>& by, bool inverse, std::int64_t heads, const float* x, float* y) {
  turn(by, inverse ? -1.0f : 1.0f, heads, x, y);
}

void turn_f64(const Rotation<double>& by, bool inverse, std::int64_t heads, const double* x, double* y) {
  turn(by, inverse ? -1.0 : 1.0, heads, x, y);
}

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::kernels {

HWY_EXPORT(turn_f32);
HWY_EXPORT(turn_f64);

void rotate(const Rotation<float>& by, bool inverse, std::int64_t heads, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(turn_f32)(by, inverse, heads, x, y);
}

void rotate(const Rotation<double>& by, bool inverse, std::int64_t heads, const double* x, double* y) {
  HWY_DYNAMIC_DISPATCH(turn_f64)(by, inverse, heads, x, y);
}

}  // namespace braid::kernels
#endif
