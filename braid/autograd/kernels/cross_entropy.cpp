#include <braid/autograd/kernels/cross_entropy.h>

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/autograd/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include <braid/autograd/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void forward(const LogitRows<T>& in, T* result) {
  const hn::ScalableTag<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
  const T* x = in.logits;
  for (std::int64_t row = 0; row < in.rows; ++row, x += in.width) {
    auto largest = lowest;
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      largest = hn::Max(largest, part.or_else(d, part.load(d, x + i), lowest));
    });
    const T top = max_lanes(d, largest);
    const auto shift = hn::Set(d, top);
    auto sums = hn::Zero(d);
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto p = exp_or_nan(d, hn::Sub(part.load(d, x + i), shift));
      sums = hn::Add(sums, part.or_else(d, p, hn::Zero(d)));
    });
    result[row] = top + std::log(sum_lanes(d, sums));
  }
}

template <class T>
void vjp(const LogitRows<T>& in, const T* logsumexp, const std::int32_t* targets, std::int32_t ignored, double scale,
         T* dlogits) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, static_cast<T>(scale));
  const T* x = in.logits;
  for (std::int64_t row = 0; row < in.rows; ++row, x += in.width, dlogits += in.width) {
    if (targets[row] == ignored) {
      std::fill_n(dlogits, in.width, T{0});
      continue;
    }
    const auto shift = hn::Set(d, logsumexp[row]);
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto p = exp_or_nan(d, hn::Sub(part.load(d, x + i), shift));
      part.store(hn::Mul(p, factor), d, dlogits + i);
    });
    dlogits[targets[row]] -= static_cast<T>(scale);
  }
}

void forward_f32(const LogitRows<float>& in, float* result) { forward(in, result); }
void forward_f64(const LogitRows<double>& in, double* result) { forward(in, result); }

void vjp_f32(const LogitRows<float>& in, const float* logsumexp, const std::int32_t* targets, std::int32_t ignored,
             double scale, float* dlogits) {
  vjp(in, logsumexp, targets, ignored, scale, dlogits);
}

void vjp_f64(const LogitRows<double>& in, const double* logsumexp, const std::int32_t* targets, std::int32_t ignored,
             double scale, double* dlogits) {
  vjp(in, logsumexp, targets, ignored, scale, dlogits);
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

void logsumexp(const LogitRows<float>& in, float* result) { HWY_DYNAMIC_DISPATCH(forward_f32)(in, result); }
void logsumexp(const LogitRows<double>& in, double* result) { HWY_DYNAMIC_DISPATCH(forward_f64)(in, result); }

void cross_entropy_vjp(const LogitRows<float>& in, const float* logsumexp, const std::int32_t* targets,
                       std::int32_t ignored, double scale, float* dlogits) {
  HWY_DYNAMIC_DISPATCH(vjp_f32)(in, logsumexp, targets, ignored, scale, dlogits);
}

void cross_entropy_vjp(const LogitRows<double>& in, const double* logsumexp, const std::int32_t* targets,
                       std::int32_t ignored, double scale, double* dlogits) {
  HWY_DYNAMIC_DISPATCH(vjp_f64)(in, logsumexp, targets, ignored, scale, dlogits);
}

}  // namespace braid::kernels
#endif
