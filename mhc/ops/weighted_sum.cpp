#include <braid/mhc/ops/weighted_sum.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/mhc/kernels/weighted_sum.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {
namespace {

using detail::In, detail::Out;

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
        {.size = x.numel(), .weights = In{weights}, .x = In{x}, .states = pointers<T>(states), .y = Out{y}});
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
    for (std::size_t k = 0; k < states.size(); ++k) dstates.push_back(Out{d[2 + k]});
    kernels::weighted_sum_kernels().of<T>().vjp({.size = dy.numel(),
                                                 .weights = In{weights},
                                                 .states = pointers<T>(states),
                                                 .dy = In{dy},
                                                 .dstates = dstates,
                                                 .dweights = Out{d[1]}});
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
  if (composed()) {
    Var y = x;
    for (std::size_t k = 0; k < states.size(); ++k) {
      const auto at = static_cast<std::int64_t>(k);
      y = y + squeeze(slice(weights, 0, at, at + 1), 0) * states[k];
    }
    return y;
  }
  const Tensor alpha = weights.value().contiguous();
  return record("weighted_sum", forward(x.value().contiguous(), alpha, values), inputs,
                [=](const Tensor& dy, const Needs& needs) { return backward(dy, alpha, values, needs); });
}

}  // namespace braid::mhc
