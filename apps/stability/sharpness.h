#pragma once
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/nn/convert.h>
#include <braid/nn/optim/adam.h>

#include "../common/lanczos.h"

namespace braid::stability {

/// How sharply a loss is curved at a model's weights.
struct Sharpness {
  double largest;         ///< eigenvalue of its Hessian
  double preconditioned;  ///< the largest in coordinates in which AdamW takes the steps of momentum
  double limit;           ///< of `preconditioned`: above it, these steps grow on a quadratic function
};

nlohmann::ordered_json to_json(const Sharpness& sharpness);

/// The scales of these coordinates in the next step, one per element of the gradients: the inverse fourth roots of the
/// second moments. `optimizer` has taken a step.
template <Parametric Model>
std::vector<double> adam_scales(const Model& grads, const nn::AdamW& optimizer, const nn::AdamWSettings& settings) {
  const nn::NamedTensors state = optimizer.state();
  const double beta = settings.beta2, correction = 1 - std::pow(beta, optimizer.steps() + 1);
  std::vector<double> scales;
  for_each_param(grads, [&](const std::string& name, const Var& grad) {
    const Tensor g = grad.value().to(DType::f64), before = state.at("second_moment." + name).to(DType::f64);
    const Tensor moment = (beta * before + (1 - beta) * g * g) / correction;
    for (const double v : moment.template to_vector<double>())
      scales.push_back(1 / std::sqrt(std::sqrt(v) + settings.eps));
  });
  return scales;
}

/// The elements of all parameters, which are f64.
template <Parametric P>
std::vector<double> flattened(const P& params) {
  std::vector<double> flat;
  for_each_param(params, [&](const std::string&, const Var& p) {
    const std::vector<double> values = p.value().template to_vector<double>();
    flat.insert(flat.end(), values.begin(), values.end());
  });
  return flat;
}

/// Parameters like `params` with other elements.
template <Parametric P>
P unflattened(P params, const std::vector<double>& flat) {
  auto next = flat.begin();
  for_each_param(params, [&](const std::string&, Var& p) {
    const std::vector<double> values(next, next + p.value().numel());
    p = Tensor::of<double>(p.shape(), values);
    next += p.value().numel();
  });
  return params;
}

/// Measures `loss(model)`, a scalar, at a model in f64 before a step of `optimizer` along `grads`.
template <Parametric Model, class Loss>
Sharpness sharpness(const Loss& loss, const Model& model, const Model& grads, const nn::AdamW& optimizer,
                    const nn::AdamWSettings& settings) {
  const std::vector<double> scales = adam_scales(grads, optimizer, settings);
  const auto product = [&](const std::vector<double>& v) { return flattened(hvp(loss, model, unflattened(model, v))); };
  const auto preconditioned = [&](std::vector<double> v) {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] *= scales[i];
    v = product(v);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] *= scales[i];
    return v;
  };
  constexpr apps::LanczosSettings kSettings{.tolerance = 0.03};  // products take long
  const std::vector<double> plain = apps::lanczos(product, num_params(model), Rng(0), kSettings),
                            scaled = apps::lanczos(preconditioned, num_params(model), Rng(0), kSettings);
  const double limit = 2 * (1 + settings.beta1) / ((1 - settings.beta1) * optimizer.lr());
  return {plain.back(), scaled.back(), limit};
}

}  // namespace braid::stability
