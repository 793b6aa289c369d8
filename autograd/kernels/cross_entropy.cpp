#include <braid/autograd/kernels/cross_entropy.h>

#include <algorithm>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

/// losses = max - x[target] + log(sum), where the sum is 1 + others if the target has the maximum. The target's term is
/// not among the others because it would cancel in the derivative of a confident row.
template <class S, class T = Compute<S>>
void forward(const LabeledRows<S>& in, std::int64_t begin, std::int64_t end, T* maxima, T* others, T* losses) {
  const hn::ScalableTag<T> d;
  const auto lane = hn::Iota(d, 0);
  const std::int64_t width = in.width, lanes = hn::Lanes(d);
  const S* x = in.logits + begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width) {
    const std::int32_t target = in.targets[row];
    maxima[row] = others[row] = losses[row] = 0;
    if (target == in.ignored) continue;
    maxima[row] = max_element(d, width, x);
    losses[row] = static_cast<T>(x[target]) - maxima[row];
    const auto shift = hn::Set(d, maxima[row]);
    others[row] = sum_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto e = part.or_else(d, exp_to_one(d, hn::Sub(part.load(d, x + i), shift)), hn::Zero(d));
      if (target < i || target - i >= lanes) return e;
      return hn::IfThenZeroElse(hn::Eq(lane, hn::Set(d, static_cast<T>(target - i))), e);
    });
  }
  const auto loss = [](auto d, auto of_target, auto others) HWY_ATTR {
    const auto rest = hn::Sub(exp_to_one(d, of_target), hn::Set(d, T{1}));
    return hn::Sub(log1p(d, hn::Add(others, rest)), of_target);
  };
  transform(loss, end - begin, losses + begin, losses + begin, others + begin);
}

/// dx = scale exp(x - max) / sum, where the target's is reduced by scale: to -scale others / sum
template <class S, class T = Compute<S>>
void vjp(const LabeledRows<S>& in, std::int64_t begin, std::int64_t end, const T* maxima, const T* others,
         const T* scales, S* dlogits) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t width = in.width;
  const S* x = in.logits + begin * width;
  dlogits += begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width, dlogits += width) {
    const std::int32_t target = in.targets[row];
    if (target == in.ignored) {
      std::fill_n(dlogits, width, S{});
      continue;
    }
    const auto of_target = exp_to_one(one, hn::Set(one, static_cast<T>(x[target]) - maxima[row]));
    const T share = scales[row] / (others[row] + hn::GetLane(of_target));
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
