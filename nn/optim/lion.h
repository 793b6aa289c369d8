#pragma once
#include <braid/nn/optim/optimizer.h>

namespace braid::nn {

/// Settings of Lion, with the paper's defaults but for the rate, which it takes 3 to 10 times smaller than AdamW's.
struct LionSettings {
  double lr = 1e-4;                   ///< the learning rate
  double beta1 = 0.9;                 ///< weight of the first moment in the sign, in [0, 1)
  double beta2 = 0.99;                ///< decay of the first moment, in [0, 1)
  double weight_decay = 0;            ///< decoupled; the paper takes it 3 to 10 times larger than AdamW's
  DecayRule decays = decay_matrices;  ///< which parameters decay
};

/// Lion: `p -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay p)`, then `m = beta2 m + (1 - beta2) g`.
/// Half the state of Adam: `first_moment.*`. arXiv:2302.06675.
class Lion : public Optimizer {
 public:
  /// Throws ValueError unless lr and weight_decay are finite and at least 0 and the betas are in [0, 1).
  explicit Lion(const LionSettings& settings = {});

 private:
  void apply(const std::vector<Update>& updates, double grad_scale) override;

  LionSettings settings_;  // but for the learning rate, which is lr()
};

}  // namespace braid::nn
