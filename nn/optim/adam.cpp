#include <braid/nn/optim/adam.h>

#include <cmath>

#include <braid/nn/optim/kernels/adam_update.h>

namespace braid::nn {
namespace {

void check_nonnegative(const char* optimizer, const char* setting, double value) {
  check_value(std::isfinite(value) && value >= 0, "{}: {} must be finite and at least 0 but is {}", optimizer, setting,
              value);
}

}  // namespace

template <WeightDecay kDecay>
AdamOptimizer<kDecay>::AdamOptimizer(AdamSettings settings) : settings_(std::move(settings)) {
  check_nonnegative(kName, "lr", settings_.lr);
  check_nonnegative(kName, "eps", settings_.eps);
  check_nonnegative(kName, "weight_decay", settings_.weight_decay);
  for (const auto& [name, beta] : {std::pair("beta1", settings_.beta1), std::pair("beta2", settings_.beta2)})
    check_value(0 <= beta && beta < 1, "{}: {} must be in [0, 1) but is {}", kName, name, beta);
}

template <WeightDecay kDecay>
void AdamOptimizer<kDecay>::set_lr(double lr) {
  check_nonnegative(kName, "lr", lr);
  settings_.lr = lr;
}

template <WeightDecay kDecay>
void AdamOptimizer<kDecay>::apply(const std::vector<Update>& updates, double grad_scale) {
  slots_.prepare_step(kName, updates);
  const auto t = static_cast<double>(slots_.steps() + 1);
  kernels::AdamCoefficients base{.beta1 = settings_.beta1, .beta2 = settings_.beta2, .eps = settings_.eps};
  base.grad_scale = grad_scale;
  base.step_size = settings_.lr / (1 - std::pow(settings_.beta1, t));
  base.sqrt_correction = std::sqrt(1 - std::pow(settings_.beta2, t));
  std::vector<kernels::AdamCoefficients> coefficients(updates.size(), base);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    make_writable(*updates[i].value);
    if (!settings_.decays(updates[i].name, *updates[i].value)) continue;
    if constexpr (kDecay == WeightDecay::decoupled)
      coefficients[i].keep = 1 - settings_.lr * settings_.weight_decay;
    else
      coefficients[i].penalty = settings_.weight_decay;
  }
  parallel_for_blocks(blocks_of(updates), [&](std::size_t, const TensorBlock& block) {
    const auto [i, begin, end] = block;
    dispatch_float(kName, updates[i].value->dtype(), [&](auto zero) {
      using T = decltype(zero);
      kernels::adam_kernels().of<T>().update(coefficients[i], updates[i].grad.template data<T>() + begin,
                                             updates[i].value->template mutable_data<T>() + begin,
                                             slots_.at(0, i).template mutable_data<T>() + begin,
                                             slots_.at(1, i).template mutable_data<T>() + begin, end - begin);
    });
  });
  slots_.count_step();
}

template class AdamOptimizer<WeightDecay::in_gradient>;
template class AdamOptimizer<WeightDecay::decoupled>;

}  // namespace braid::nn
