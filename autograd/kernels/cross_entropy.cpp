#include <braid/autograd/kernels/cross_entropy.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/autograd/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void forward(const LabelledRows<T>& in, T* logsumexp, T* losses) {
  const hn::ScalableTag<T> d;
  const T* x = in.logits;
  for (std::int64_t row = 0; row < in.rows; ++row, x += in.width) {
    const T top = max_element(d, in.width, x);
    const auto shift = hn::Set(d, top);
    const T sum = sum_vectors(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      return part.or_else(d, exp_to_one(d, hn::Sub(part.load(d, x + i), shift)), hn::Zero(d));
    });
    const T log_sum = std::log(sum);
    logsumexp[row] = top + log_sum;
    const std::int32_t target = in.targets[row];
    losses[row] = target == in.ignored ? T{0} : top - x[target] + log_sum;
  }
}

template <class T>
void vjp(const LabelledRows<T>& in, const T* logsumexp, double scale, T* dlogits) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, static_cast<T>(scale));
  const T* x = in.logits;
  for (std::int64_t row = 0; row < in.rows; ++row, x += in.width, dlogits += in.width) {
    if (in.targets[row] == in.ignored) {
      std::fill_n(dlogits, in.width, T{0});
      continue;
    }
    const auto shift = hn::Set(d, logsumexp[row]);
    for_each_vector(d, in.width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto p = exp_to_one(d, hn::Sub(part.load(d, x + i), shift));
      part.store(hn::Mul(p, factor), d, dlogits + i);
    });
    dlogits[in.targets[row]] -= static_cast<T>(scale);
  }
}

void forward_f32(const LabelledRows<float>& in, float* logsumexp, float* losses) { forward(in, logsumexp, losses); }
void forward_f64(const LabelledRows<double>& in, double* logsumexp, double* losses) { forward(in, logsumexp, losses); }

void vjp_f32(const LabelledRows<float>& in, const float* logsumexp, double scale, float* dlogits) {
  vjp(in, logsumexp, scale, dlogits);
}

void vjp_f64(const LabelledRows<double>& in, const double* logsumexp, double scale, double* dlogits) {
  vjp(in, logsumexp, scale, dlogits);
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

void cross_entropy(const LabelledRows<float>& in, float* logsumexp, float* losses) {
  HWY_DYNAMIC_DISPATCH(forward_f32)(in, logsumexp, losses);
}

void cross_entropy(const LabelledRows<double>& in, double* logsumexp, double* losses) {
  HWY_DYNAMIC_DISPATCH(forward_f64)(in, logsumexp, losses);
}

void cross_entropy_vjp(const LabelledRows<float>& in, const float* logsumexp, double scale, float* dlogits) {
  HWY_DYNAMIC_DISPATCH(vjp_f32)(in, logsumexp, scale, dlogits);
}

void cross_entropy_vjp(const LabelledRows<double>& in, const double* logsumexp, double scale, double* dlogits) {
  HWY_DYNAMIC_DISPATCH(vjp_f64)(in, logsumexp, scale, dlogits);
}

}  // namespace braid::kernels
#endif
