#include <braid/autograd/kernels/cross_entropy.h>

#include <algorithm>
#include <cmath>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class S, class T = Compute<S>>
void forward(const LabeledRows<S>& in, std::int64_t begin, std::int64_t end, T* logsumexp, T* losses) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.rows.width;
  const S* x = in.logits + begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width) {
    const T max = max_element(d, width, x);
    const auto shift = hn::Set(d, max);
    const T sum = sum_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      return part.or_else(d, exp_to_one(d, hn::Sub(part.load(d, x + i), shift)), hn::Zero(d));
    });
    const T log_sum = std::log(sum);
    logsumexp[row] = max + log_sum;
    const std::int32_t target = in.targets[row];
    losses[row] = target == in.ignored ? T{0} : max - x[target] + log_sum;
  }
}

template <class S, class T = Compute<S>>
void vjp(const LabeledRows<S>& in, std::int64_t begin, std::int64_t end, const T* logsumexp, const T* scales,
         S* dlogits) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t width = in.rows.width;
  const S* x = in.logits + begin * width;
  dlogits += begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width, dlogits += width) {
    if (in.targets[row] == in.ignored) {
      std::fill_n(dlogits, width, S{});
      continue;
    }
    const auto shift = hn::Set(d, logsumexp[row]), scale = hn::Set(d, scales[row]);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto p = exp_to_one(d, hn::Sub(part.load(d, x + i), shift));
      part.store(hn::Mul(p, scale), d, dlogits + i);
    });
    const std::int32_t target = in.targets[row];
    const auto p = exp_to_one(one, hn::Set(one, x[target] - logsumexp[row]));
    dlogits[target] = static_cast<S>((hn::GetLane(p) - 1) * scales[row]);
  }
}

template <class T>
constexpr CrossEntropyKernels<T> kTable = {.forward = for_all_rows<forward<T>>, .vjp = for_all_rows<vjp<T>>};

Tables<CrossEntropyKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<CrossEntropyKernels> cross_entropy_kernels())
