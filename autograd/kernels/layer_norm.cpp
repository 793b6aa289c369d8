#include <braid/autograd/kernels/layer_norm.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/autograd/kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void forward(const LayerNormRows<T>& in, double eps, T* y, const LayerNormMoments<T>& moments) {
  const hn::ScalableTag<T> d;
  const T *x = in.x, count = static_cast<T>(in.width);
  for (std::int64_t row = 0; row < in.rows; ++row, x += in.width, y += in.width) {
    const T sum = sum_vectors(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR { return part.load(d, x + i); });
    moments.mean[row] = sum / count;
    const auto mean = hn::Set(d, moments.mean[row]);
    // A second pass over the row, which is in the first-level cache: E[x^2] - mean^2 would cancel.
    const T squares = sum_vectors(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto centred = part.or_else(d, hn::Sub(part.load(d, x + i), mean), hn::Zero(d));
      return hn::Mul(centred, centred);
    });
    moments.rstd[row] = 1 / std::sqrt(squares / count + static_cast<T>(eps));
    const auto scale = hn::Set(d, moments.rstd[row]);
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto normalised = hn::Mul(hn::Sub(part.load(d, x + i), mean), scale);
      part.store(hn::MulAdd(normalised, part.load(d, in.weight + i), part.load(d, in.bias + i)), d, y + i);
    });
  }
}

/// With n = (x - mean) rstd, g = dy weight: dx = rstd (g - mean(g) - n mean(g n)), dweight = sum over rows of dy n,
/// dbias = sum over rows of dy.
template <class T>
void vjp(const LayerNormRows<T>& in, const LayerNormMoments<const T>& moments, const T* dy,
         const LayerNormCotangents<T>& out) {
  const hn::ScalableTag<T> d;
  const T *x = in.x, count = static_cast<T>(in.width);
  T* dx = out.dx;
  std::fill_n(out.dweight, in.width, T{0});
  std::fill_n(out.dbias, in.width, T{0});
  for (std::int64_t row = 0; row < in.rows; ++row, dy += in.width, x += in.width, dx += in.width) {
    const auto mean = hn::Set(d, moments.mean[row]), scale = hn::Set(d, moments.rstd[row]);
    auto gs = hn::Zero(d), dots = hn::Zero(d);
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto cotangent = part.load(d, dy + i), n = hn::Mul(hn::Sub(part.load(d, x + i), mean), scale);
      const auto g = hn::Mul(cotangent, part.load(d, in.weight + i));
      gs = hn::Add(gs, g);
      dots = hn::MulAdd(g, n, dots);
      part.store(hn::MulAdd(cotangent, n, part.load(d, out.dweight + i)), d, out.dweight + i);
      part.store(hn::Add(cotangent, part.load(d, out.dbias + i)), d, out.dbias + i);
    });
    const auto g_mean = hn::Set(d, sum_lanes(d, gs) / count), dot_mean = hn::Set(d, sum_lanes(d, dots) / count);
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto n = hn::Mul(hn::Sub(part.load(d, x + i), mean), scale);
      const auto centred = hn::Sub(hn::Mul(part.load(d, dy + i), part.load(d, in.weight + i)), g_mean);
      part.store(hn::Mul(scale, hn::NegMulAdd(n, dot_mean, centred)), d, dx + i);
    });
  }
}

void forward_f32(const LayerNormRows<float>& in, double eps, float* y, const LayerNormMoments<float>& moments) {
  forward(in, eps, y, moments);
}

void forward_f64(const LayerNormRows<double>& in, double eps, double* y, const LayerNormMoments<double>& moments) {
  forward(in, eps, y, moments);
}

void vjp_f32(const LayerNormRows<float>& in, const LayerNormMoments<const float>& moments, const float* dy,
             const LayerNormCotangents<float>& out) {
  vjp(in, moments, dy, out);
}

void vjp_f64(const LayerNormRows<double>& in, const LayerNormMoments<const double>& moments, const double* dy,
             const LayerNormCotangents<double>& out) {
  vjp(in, moments, dy, out);
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

void layer_norm(const LayerNormRows<float>& in, double eps, float* y, const LayerNormMoments<float>& moments) {
  HWY_DYNAMIC_DISPATCH(forward_f32)(in, eps, y, moments);
}

void layer_norm(const LayerNormRows<double>& in, double eps, double* y, const LayerNormMoments<double>& moments) {
  HWY_DYNAMIC_DISPATCH(forward_f64)(in, eps, y, moments);
}

void layer_norm_vjp(const LayerNormRows<float>& in, const LayerNormMoments<const float>& moments, const float* dy,
                    const LayerNormCotangents<float>& out) {
  HWY_DYNAMIC_DISPATCH(vjp_f32)(in, moments, dy, out);
}

void layer_norm_vjp(const LayerNormRows<double>& in, const LayerNormMoments<const double>& moments, const double* dy,
                    const LayerNormCotangents<double>& out) {
  HWY_DYNAMIC_DISPATCH(vjp_f64)(in, moments, dy, out);
}

}  // namespace braid::kernels
#endif
