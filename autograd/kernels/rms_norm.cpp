#include <braid/autograd/kernels/rms_norm.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/autograd/kernels/rms_norm.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void forward(const RmsNormRows<T>& in, double eps, T* y, T* rstd) {
  const hn::ScalableTag<T> d;
  const T* x = in.x;
  for (std::int64_t row = 0; row < in.rows; ++row, x += in.width, y += in.width) {
    const T squares = sum_vectors(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto v = part.load(d, x + i);
      return hn::Mul(v, v);
    });
    rstd[row] = 1 / std::sqrt(squares / static_cast<T>(in.width) + static_cast<T>(eps));
    const auto scale = hn::Set(d, rstd[row]);
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto normalised = hn::Mul(part.load(d, x + i), scale);
      part.store(hn::Mul(normalised, part.load(d, in.weight + i)), d, y + i);
    });
  }
}

/// With g = dy weight: dx = rstd g - x rstd^3 mean(g x), dweight = sum over rows of dy x rstd.
template <class T>
void vjp(const RmsNormRows<T>& in, const T* rstd, const T* dy, T* dx, T* dweight) {
  const hn::ScalableTag<T> d;
  const T* x = in.x;
  std::fill_n(dweight, in.width, T{0});
  for (std::int64_t row = 0; row < in.rows; ++row, dy += in.width, x += in.width, dx += in.width) {
    const auto scale = hn::Set(d, rstd[row]);
    const T dot = sum_vectors(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto dyx = hn::Mul(part.load(d, dy + i), part.load(d, x + i));
      part.store(hn::MulAdd(dyx, scale, part.load(d, dweight + i)), d, dweight + i);
      return hn::Mul(dyx, part.load(d, in.weight + i));
    });
    const auto pull = hn::Set(d, rstd[row] * rstd[row] * rstd[row] * dot / static_cast<T>(in.width));
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto g = hn::Mul(part.load(d, dy + i), part.load(d, in.weight + i));
      part.store(hn::NegMulAdd(part.load(d, x + i), pull, hn::Mul(g, scale)), d, dx + i);
    });
  }
}

void forward_f32(const RmsNormRows<float>& in, double eps, float* y, float* rstd) { forward(in, eps, y, rstd); }
void forward_f64(const RmsNormRows<double>& in, double eps, double* y, double* rstd) { forward(in, eps, y, rstd); }

void vjp_f32(const RmsNormRows<float>& in, const float* rstd, const float* dy, float* dx, float* dweight) {
  vjp(in, rstd, dy, dx, dweight);
}

void vjp_f64(const RmsNormRows<double>& in, const double* rstd, const double* dy, double* dx, double* dweight) {
  vjp(in, rstd, dy, dx, dweight);
}

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::kernels {

HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_f64);
HWY_EXPORT(vjp_f32);
HWY_EXPORT(vjp_f64);

void rms_norm(const RmsNormRows<float>& in, double eps, float* y, float* rstd) {
  HWY_DYNAMIC_DISPATCH(forward_f32)(in, eps, y, rstd);
}

void rms_norm(const RmsNormRows<double>& in, double eps, double* y, double* rstd) {
  HWY_DYNAMIC_DISPATCH(forward_f64)(in, eps, y, rstd);
}

void rms_norm_vjp(const RmsNormRows<float>& in, const float* rstd, const float* dy, float* dx, float* dweight) {
  HWY_DYNAMIC_DISPATCH(vjp_f32)(in, rstd, dy, dx, dweight);
}

void rms_norm_vjp(const RmsNormRows<double>& in, const double* rstd, const double* dy, double* dx, double* dweight) {
  HWY_DYNAMIC_DISPATCH(vjp_f64)(in, rstd, dy, dx, dweight);
}

}  // namespace braid::kernels
#endif
