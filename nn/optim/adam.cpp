#include <braid/nn/optim/adam.h>

#include <cmath>

#include <braid/nn/optim/detail/multi_tensor.h>
#include <braid/nn/optim/kernels/adam_update.h>

namespace braid::nn {

template <WeightDecay kDecay>
AdamOptimizer<kDecay>::AdamOptimizer(const char* optimizer, const AdamOptimizerSettings<kDecay>& settings)
    : Optimizer(optimizer, settings.lr, {"first_moment", "second_moment"}, settings.decays), settings_(settings) {
  check_nonnegative("eps", settings.eps);
  check_nonnegative("weight_decay", settings.weight_decay);
  check_fraction("beta1", settings.beta1);
  check_fraction("beta2", settings.beta2);
}

template <WeightDecay kDecay>
void AdamOptimizer<kDecay>::apply(const std::vector<Update>& updates, double grad_scale) {
  const auto t = static_cast<double>(steps() + 1);
  const kernels::AdamCoefficients plain{.beta1 = settings_.beta1,
                                        .beta2 = settings_.beta2,
                                        .eps = settings_.eps,
                                        .step_size = lr() / (1 - std::pow(settings_.beta1, t)),
                                        .sqrt_correction = std::sqrt(1 - std::pow(settings_.beta2, t)),
                                        .grad_scale = grad_scale};
  kernels::AdamCoefficients decaying = plain;
  if constexpr (kDecay == WeightDecay::decoupled)
    decaying.keep = 1 - lr() * settings_.weight_decay;
  else
    decaying.penalty = settings_.weight_decay;
  for_each_block(kName, updates, &Update::value, [&]<class T>(T, const TensorBlock& block) {
    const auto& [name, value, grad, decays, state] = updates[block.tensor];
    kernels::adam_kernels().of<T>().update(decays ? decaying : plain, grad.template data<T>() + block.begin,
                                           value->template mutable_data<T>() + block.begin,
                                           state[0].template mutable_data<T>() + block.begin,
                                           state[1].template mutable_data<T>() + block.begin, block.end - block.begin);
  });
}

template class AdamOptimizer<WeightDecay::in_gradient>;
template class AdamOptimizer<WeightDecay::decoupled>;

}  // namespace braid::nn
