#include <braid/mhc/ops/weighted_sum.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/mhc/kernels/weighted_sum.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {

/// Cotangents of x, weights and the states.
static std::vector<Tensor> backward(const Tensor& cotangent, const Tensor& weights, const std::vector<Tensor>& states,
                                    const Needs& needs) {
  std::vector<Tensor> d{cotangent.contiguous(), needs[1] ? detail::like(weights) : Tensor()};
  for (std::size_t k = 0; k < states.size(); ++k) d.push_back(needs[2 + k] ? detail::like(d[0]) : Tensor());
  kernels::weighted_sum_kernels().dispatch("weighted_sum", d[0].dtype(),
                                           [&](const auto& kernel) { kernel.vjp(weights, states, d); });
  return d;
}

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
    for (std::size_t k = 0; k < states.size(); ++k) y = y + weights[static_cast<std::int64_t>(k)] * states[k];
    return y;
  }
  const Tensor start = x.value().contiguous(), alpha = weights.value().contiguous();
  Tensor y(x.shape(), x.dtype());
  kernels::weighted_sum_kernels().dispatch("weighted_sum", x.dtype(),
                                           [&](const auto& kernel) { kernel.sum(start, alpha, values, y); });
  return record("weighted_sum", y, inputs,
                [=](const Tensor& dy, const Needs& needs) { return backward(dy, alpha, values, needs); });
}

}  // namespace braid::mhc
