#pragma once
#include <braid/nn/optim/optimizer.h>

namespace braid::nn {

/// Settings of SGD.
struct SGDSettings {
  double lr = 1e-2;                   ///< the learning rate
  double momentum = 0;                ///< the factor that the velocity keeps per step, in [0, 1)
  bool nesterov = false;              ///< evaluates one step ahead along the velocity; needs a momentum
  double weight_decay = 0;            ///< adds weight_decay * p to the gradient
  DecayRule decays = decay_matrices;  ///< which parameters decay
};

/// Stochastic gradient descent: `g = grad + weight_decay p`, `u = momentum u + g`, `p -= lr u`;
/// with nesterov `p -= lr (g + momentum u)`. The same arithmetic as PyTorch's, in one pass over all parameters. With
/// momentum, its state has `velocity.*`.
class SGD : public Optimizer {
 public:
  /// Throws ValueError unless lr and weight_decay are finite and at least 0, momentum is in [0, 1), and nesterov comes
  /// with a momentum.
  explicit SGD(const SGDSettings& settings = {});

 private:
  void apply(const std::vector<Update>& updates, double grad_scale) override;

  SGDSettings settings_;  // but for the learning rate, which is lr()
};

}  // namespace braid::nn
