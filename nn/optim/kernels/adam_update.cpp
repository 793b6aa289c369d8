#include <braid/nn/optim/kernels/adam_update.h>

#define HWY_TARGET_INCLUDE "braid/nn/optim/kernels/adam_update.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void update(const AdamCoefficients& c, const T* grad, T* p, T* m, T* v, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto penalty = set(c.penalty), keep = set(c.keep), eps = set(c.eps), step_size = set(c.step_size);
  const auto beta2 = set(c.beta2), new1 = set(1 - c.beta1), new2 = set(1 - c.beta2);
  const auto correction = set(1 / c.sqrt_correction), grad_scale = set(c.grad_scale);
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto old_p = part.load(d, p + i), old_m = part.load(d, m + i);
    const auto g = hn::MulAdd(penalty, old_p, hn::Mul(grad_scale, part.load(d, grad + i)));
    const auto mean = hn::MulAdd(new1, hn::Sub(g, old_m), old_m);
    const auto square = hn::MulAdd(beta2, part.load(d, v + i), hn::Mul(new2, hn::Mul(g, g)));
    const auto denominator = hn::MulAdd(hn::Sqrt(square), correction, eps);
    part.store(mean, d, m + i);
    part.store(square, d, v + i);
    part.store(hn::MulSub(keep, old_p, hn::Div(hn::Mul(step_size, mean), denominator)), d, p + i);
  });
}

template <class T>
constexpr AdamKernels<T> kTable = {.update = update<T>};

Tables<AdamKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<AdamKernels> adam_kernels())
