#include <braid/mhc/ops/attention_residual.h>

#include <braid/autograd/ops.h>
#include <braid/mhc/kernels/attention_residual.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {
namespace {

constexpr const char* kOp = "attention_residual";

void check_arguments(const Var& query, const Var& norm, std::span<const Var> states) {
  check_shape(!states.empty(), "{}: states must be one or more but are none", kOp);
  const Shape& first = states[0].shape();
  check_shape(first.rank() >= 1, "{}: states must have shape [..., C] but states[0] is a scalar", kOp);
  for (std::size_t i = 1; i < states.size(); ++i) {
    check_shape(states[i].shape() == first, "{}: states[{}] must have the shape {} of states[0] but has {}", kOp, i,
                first, states[i].shape());
    check_same_dtype(kOp, states[0].value(), states[i].value());
  }
  for (const auto& [name, param] : {std::pair{"query", &query}, {"norm", &norm}}) {
    check_shape(param->shape() == Shape{first[-1]}, "{}: {} must have shape [{}] to match states of {} but has {}", kOp,
                name, first[-1], first, param->shape());
    detail::check_map_dtype(kOp, name, *param, states[0]);
  }
}

/// The states [N, ..., C] in the type of the query.
Var stacked(const Var& query, std::span<const Var> states) { return cast(stack(states, 0), query.dtype()); }

/// Cotangents of the key and the states, whose parts are added to what comes to the states passed on.
std::vector<Tensor> backward(const Tensor& key, const std::vector<Tensor>& states, const Tensor& saved,
                             std::span<Tensor> dys, const Needs& needs) {
  if (!dys[0].defined()) return {dys.begin(), dys.end()};
  const Tensor dy = dys[0].contiguous();
  std::vector<Tensor> d{detail::like(key)};
  for (std::size_t i = 1; i < dys.size(); ++i) {
    const bool in_place = dys[i].unshared() && dys[i].is_contiguous();
    d.push_back(!needs[i]           ? Tensor()
                : !dys[i].defined() ? zeros(dy.shape(), dy.dtype())
                : in_place          ? std::move(dys[i])
                                    : dys[i].clone());
  }
  kernels::attention_residual_kernels().dispatch(kOp, dy.dtype(),
                                                 [&](const auto& kernel) { kernel.vjp(key, states, saved, dy, d); });
  return d;
}

}  // namespace

Var attention_residual_weights(const Var& query, const Var& norm, std::span<const Var> states, double eps) {
  check_arguments(query, norm, states);
  return softmax(sum(rms_norm(stacked(query, states), norm, eps) * query, -1), 0);
}

Var attention_residual(const Var& query, const Var& norm, std::span<const Var> states, double eps) {
  return attention_residual_in_turn(query, norm, {states.begin(), states.end()}, eps).first;
}

std::pair<Var, std::vector<Var>> attention_residual_in_turn(const Var& query, const Var& norm, std::vector<Var> states,
                                                            double eps) {
  if (composed()) {
    const Var weights = expand_dims(attention_residual_weights(query, norm, states, eps), -1);
    return {cast(sum(weights * stacked(query, states), 0), states[0].dtype()), std::move(states)};
  }
  check_arguments(query, norm, states);
  std::vector<Var> inputs{query * norm};
  inputs.insert(inputs.end(), states.begin(), states.end());
  std::vector<Tensor> values;
  for (const Var& state : states) values.push_back(state.value().contiguous());
  const Tensor key = inputs[0].value();
  Tensor y(states[0].shape(), states[0].dtype()),
      saved(y.shape().with(-1, 3).inserted(y.rank(), std::ssize(states)), key.dtype());
  kernels::attention_residual_kernels().dispatch(kOp, y.dtype(),
                                                 [&](const auto& kernel) { kernel.read(key, values, eps, saved, y); });
  std::vector<Tensor> outputs{y};
  outputs.insert(outputs.end(), values.begin(), values.end());
  std::vector<Var> results = record(kOp, std::move(outputs), inputs, [=](std::span<Tensor> dys, const Needs& needs) {
    return backward(key, values, saved, dys, needs);
  });
  for (std::size_t i = 0; i < states.size(); ++i)
    if (states[i].requires_grad()) states[i] = results[1 + i];  // constants stay constants
  return {results[0], std::move(states)};
}

}  // namespace braid::mhc
