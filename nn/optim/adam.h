#pragma once
#include <braid/nn/optim/detail/slots.h>

namespace braid::nn {

/// How weight decay acts: as a gradient of 1/2 weight_decay |p|^2 that passes through the moments, or on the parameter.
enum class WeightDecay { in_gradient, decoupled };

/// Settings of Adam and AdamW.
struct AdamSettings {
  double lr = 1e-3;                       ///< the learning rate
  double beta1 = 0.9;                     ///< of the average of gradients
  double beta2 = 0.999;                   ///< of that of their squares
  double eps = 1e-8;                      ///< added to the root
  double weight_decay = 0;                ///< see WeightDecay
  DecayRule decays = decay_weights_only;  ///< which parameters decay
};

/// Adam: with m and v the moving averages of g and g^2, each divided by 1 - beta^t to correct its start at zero,
/// `p -= lr * m / (sqrt(v) + eps)`; AdamW also has `p -= lr * weight_decay * p`. arXiv:1412.6980, arXiv:1711.05101.
/// The same arithmetic as PyTorch's, in one pass over all parameters.
template <WeightDecay kDecay>
class AdamOptimizer {
 public:
  /// Throws ValueError unless lr, eps and weight_decay are finite and at least 0 and the betas are in [0, 1).
  explicit AdamOptimizer(AdamSettings settings = {});

  double lr() const { return settings_.lr; }  ///< the learning rate of the next step
  /// Throws ValueError unless lr is finite and at least 0.
  void set_lr(double lr);
  std::int64_t steps() const { return slots_.steps(); }  ///< how many were taken

  /// Updates the model in place; a parameter that shares its storage gets its own first. When memory runs out, no
  /// parameter has changed and no step is counted. The gradients are `grads` times `grad_scale`, see nn::clipping().
  template <Parametric M>
  void step(M& model, const M& grads, double grad_scale = 1) {
    apply(match_updates(kName, model, grads), grad_scale);
  }

  /// `step`, and `first_moment.*` and `second_moment.*` for each parameter.
  NamedTensors state() const { return slots_.state(); }
  /// Continues from a state() of a model with the same parameters. Throws Error listing the names that do not fit.
  template <Parametric M>
  void load_state(M& model, const NamedTensors& state) {
    slots_.load(kName, named_params(model), state);
  }

 private:
  static constexpr const char* kName = kDecay == WeightDecay::decoupled ? "AdamW" : "Adam";

  void apply(const std::vector<Update>& updates, double grad_scale);

  AdamSettings settings_;
  Slots slots_{{"first_moment", "second_moment"}};
};

/// With decay in the gradient, as arXiv:1412.6980 and PyTorch's Adam have it.
using Adam = AdamOptimizer<WeightDecay::in_gradient>;
/// With decoupled decay, arXiv:1711.05101.
using AdamW = AdamOptimizer<WeightDecay::decoupled>;

}  // namespace braid::nn
