#pragma once
#include <braid/nn/optim/detail/slots.h>

namespace braid::nn {

/// Settings of SGD.
struct SGDSettings {
  double lr = 1e-2;                       ///< the learning rate
  double momentum = 0;                    ///< the share of the velocity that stays
  bool nesterov = false;                  ///< looks ahead along the velocity
  double weight_decay = 0;                ///< adds so many times p to the gradient
  DecayRule decays = decay_weights_only;  ///< which parameters decay
};

/// Stochastic gradient descent: `g = grad + weight_decay p`, `u = momentum u + g`, `p -= lr u`;
/// with nesterov `p -= lr (g + momentum u)`. The same arithmetic as PyTorch's, in one pass over all parameters.
class SGD {
 public:
  /// Throws ValueError unless lr and weight_decay are finite and at least 0 and momentum is in [0, 1).
  explicit SGD(SGDSettings settings = {});

  double lr() const { return settings_.lr; }  ///< the learning rate of the next step
  /// Throws ValueError unless lr is finite and at least 0.
  void set_lr(double lr);
  std::int64_t steps() const { return slots_.steps(); }  ///< how many were taken

  /// Updates the model in place; a parameter that shares its storage gets its own first. When memory runs out, no
  /// parameter has changed and no step is counted. The gradients are `grads` times `grad_scale`, see nn::clipping().
  template <Parametric M>
  void step(M& model, const M& grads, double grad_scale = 1) {
    apply(match_updates("SGD", model, grads), grad_scale);
  }

  /// `step`, and with momentum `velocity.*` for each parameter.
  NamedTensors state() const { return slots_.state(); }
  /// Continues from a state() of a model with the same parameters. Throws Error listing the names that do not fit.
  template <Parametric M>
  void load_state(M& model, const NamedTensors& state) {
    slots_.load("SGD", named_params(model), state);
  }

 private:
  void apply(const std::vector<Update>& updates, double grad_scale);

  SGDSettings settings_;
  Slots slots_;
};

}  // namespace braid::nn
