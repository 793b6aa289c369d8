#pragma once
#include <braid/nn/optim/optimizer.h>

namespace braid::nn {

/// How weight decay acts: as a gradient of 1/2 weight_decay |p|^2 that passes through the moments, or on the parameter.
enum class WeightDecay { in_gradient, decoupled };

/// Settings of Adam and AdamW, with PyTorch's defaults, but that only matrices decay.
template <WeightDecay kDecay>
struct AdamOptimizerSettings {
  double lr = 1e-3;                                                   ///< the learning rate
  double beta1 = 0.9;                                                 ///< decay of the first moment
  double beta2 = 0.999;                                               ///< decay of the second moment
  double eps = 1e-8;                                                  ///< added to the root of the second moment
  double weight_decay = kDecay == WeightDecay::decoupled ? 0.01 : 0;  ///< see WeightDecay; 0 in Adam, 0.01 in AdamW
  DecayRule decays = decay_matrices;                                  ///< which parameters decay
};

/// Settings of Adam.
using AdamSettings = AdamOptimizerSettings<WeightDecay::in_gradient>;
/// Settings of AdamW.
using AdamWSettings = AdamOptimizerSettings<WeightDecay::decoupled>;

/// Adam: with m and v the moving averages of g and g^2, each divided by 1 - beta^t to correct its start at zero,
/// `p -= lr * m / (sqrt(v) + eps)`; AdamW also has `p -= lr * weight_decay * p`. arXiv:1412.6980, arXiv:1711.05101.
/// The same arithmetic as PyTorch's, in one pass over all parameters. Its state has `first_moment.*` and
/// `second_moment.*`.
template <WeightDecay kDecay>
class AdamOptimizer : public Optimizer {
 public:
  /// Throws ValueError unless lr, eps and weight_decay are finite and at least 0 and the betas are in [0, 1).
  explicit AdamOptimizer(const AdamOptimizerSettings<kDecay>& settings = {}) : AdamOptimizer(kName, settings) {}

 protected:
  AdamOptimizer(const char* name, const AdamOptimizerSettings<kDecay>& settings);
  void apply(const std::vector<Update>& updates, double grad_scale) override;

 private:
  static constexpr const char* kName = kDecay == WeightDecay::decoupled ? "AdamW" : "Adam";

  AdamOptimizerSettings<kDecay> settings_;  // but for the learning rate, which is lr()
};

/// With decay in the gradient, as arXiv:1412.6980 and PyTorch's Adam have it.
using Adam = AdamOptimizer<WeightDecay::in_gradient>;
/// With decoupled decay, arXiv:1711.05101.
using AdamW = AdamOptimizer<WeightDecay::decoupled>;

}  // namespace braid::nn
