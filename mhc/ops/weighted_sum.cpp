#include <braid/mhc/ops/weighted_sum.h>

#include <braid/autograd/detail/in_f32.h>
#include <braid/mhc/detail/arguments.h>
#include <braid/mhc/kernels/weighted_sum.h>

namespace braid::mhc {
namespace {

template <class T>
std::vector<const T*> pointers(const std::vector<Tensor>& states) {
  std::vector<const T*> data;
  for (const Tensor& state : states) data.push_back(state.data<T>());
  return data;
}

Tensor forward(const Tensor& x, const Tensor& weights, const std::vector<Tensor>& states) {
  Tensor y(x.shape(), x.dtype());
  dispatch_float("weighted_sum", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::weighted_sum_kernels().of<T>().sum(
        {x.numel(), weights.data<T>(), x.data<T>(), pointers<T>(states), y.mutable_data<T>()});
  });
  return y;
}

/// Cotangents of x, weights and the states.
std::vector<Tensor> backward(const Tensor& cotangent, const Tensor& weights, const std::vector<Tensor>& states,
                             const Needs& needs) {
  const Tensor dy = cotangent.contiguous();
  std::vector<Tensor> d{dy, needs[1] ? Tensor(weights.shape(), weights.dtype()) : Tensor()};
  for (std::size_t k = 0; k < states.size(); ++k) d.push_back(needs[2 + k] ? Tensor(dy.shape(), dy.dtype()) : Tensor());
  dispatch_float("weighted_sum", dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<T*> dstates;
    for (std::size_t k = 0; k < states.size(); ++k) dstates.push_back(detail::Out{d[2 + k]});
    kernels::weighted_sum_kernels().of<T>().vjp(
        {dy.numel(), weights.data<T>(), pointers<T>(states), dy.data<T>(), dstates, detail::Out{d[1]}});
  });
  return d;
}

}  // namespace

Var weighted_sum(const Var& x, const Var& weights, std::span<const Var> states) {
  const Shape expected{static_cast<std::int64_t>(states.size())};
  check_shape(weights.shape() == expected, "weighted_sum: weights must have shape {}, one per state, but has {}",
              expected, weights.shape());
  detail::check_map_dtype("weighted_sum", "weights", weights, x);
  if (x.dtype() == DType::bf16) {
    std::vector<Var> wide;
    for (const Var& state : states) wide.push_back(braid::detail::widened(state));
    return cast(weighted_sum(braid::detail::widened(x), weights, wide), DType::bf16);
  }
  std::vector<Var> inputs{x, weights};
  std::vector<Tensor> values;
  for (const Var& state : states) {
    check_shape(state.shape() == x.shape(), "weighted_sum: states[{}] must have the shape {} of x but has {}",
                values.size(), x.shape(), state.shape());
    check_same_dtype("weighted_sum", x.value(), state.value());
    inputs.push_back(state);
    values.push_back(state.value().contiguous());
  }
  const Tensor alpha = weights.value().contiguous();
  return record("weighted_sum", forward(x.value().contiguous(), alpha, values), inputs,
                [=](const Tensor& dy, const Needs& needs) { return backward(dy, alpha, values, needs); });
}

}  // namespace braid::mhc
