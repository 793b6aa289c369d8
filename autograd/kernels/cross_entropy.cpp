#include <braid/autograd/kernels/cross_entropy.h>

#include <algorithm>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class T>
T exp_of(T x) {
  const hn::CappedTag<T, 1> d;
  return hn::GetLane(exp_to_one(d, hn::Set(d, x)));
}

/// The sum of exp(x - max) without the target's, which would cancel in the derivative of a confident row.
template <class S, class T>
T sum_of_others(std::int64_t width, const S* x, std::int64_t target, T max) {
  const hn::ScalableTag<T> d;
  const auto shift = hn::Set(d, max);
  const auto sum = [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    return sum_vectors(d, end - begin, [&](std::int64_t i, auto part) HWY_ATTR {
      return part.or_else(d, exp_to_one(d, hn::Sub(part.load(d, x + begin + i), shift)), hn::Zero(d));
    });
  };
  return sum(0, target) + sum(target + 1, width);
}

/// losses = max - x[target] + log(sum), where the sum is 1 + others if the target has the maximum.
template <class S, class T = Compute<S>>
void forward(const LabeledRows<S>& in, std::int64_t begin, std::int64_t end, T* maxima, T* others, T* losses) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t width = in.rows.width;
  const S* x = in.logits + begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width) {
    const std::int32_t target = in.targets[row];
    maxima[row] = others[row] = losses[row] = 0;
    if (target == in.ignored) continue;
    const T max = maxima[row] = max_element(d, width, x), of_target = static_cast<T>(x[target]) - max;
    others[row] = sum_of_others(width, x, target, max);
    const auto rest = hn::Set(one, others[row] + (exp_of(of_target) - 1));
    losses[row] = hn::GetLane(log1p(one, rest)) - of_target;
  }
}

/// dx = scale exp(x - max) / sum, where the target's is reduced by scale: to -scale others / sum
template <class S, class T = Compute<S>>
void vjp(const LabeledRows<S>& in, std::int64_t begin, std::int64_t end, const T* maxima, const T* others,
         const T* scales, S* dlogits) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.rows.width;
  const S* x = in.logits + begin * width;
  dlogits += begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width, dlogits += width) {
    const std::int32_t target = in.targets[row];
    if (target == in.ignored) {
      std::fill_n(dlogits, width, S{});
      continue;
    }
    const T share = scales[row] / (others[row] + exp_of(static_cast<T>(x[target]) - maxima[row]));
    const auto shift = hn::Set(d, maxima[row]), scale = hn::Set(d, share);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto p = exp_to_one(d, hn::Sub(part.load(d, x + i), shift));
      part.store(hn::Mul(p, scale), d, dlogits + i);
    });
    dlogits[target] = static_cast<S>(-others[row] * share);
  }
}

template <class T>
constexpr CrossEntropyKernels<T> kTable = {.forward = for_all_rows<forward<T>>, .vjp = for_all_rows<vjp<T>>};

Tables<CrossEntropyKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<CrossEntropyKernels> cross_entropy_kernels())
