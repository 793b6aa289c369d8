#pragma once
#include <optional>

#include <braid/nn/optim/optimizer.h>

namespace braid::nn {

/// Settings of Adafactor, with PyTorch's defaults, but that only matrices decay.
struct AdafactorSettings {
  double lr = 1e-2;                   ///< the highest rate relative to a parameter's root mean square
  double beta2_decay = -0.8;          ///< the second moment keeps 1 - t^beta2_decay at step t; at most 0
  std::optional<double> eps1 = {};    ///< the least variance is eps1^2; by default the dtype's epsilon
  double eps2 = 1e-3;                 ///< the least root mean square of a parameter that is taken
  double clip = 1;                    ///< the largest root mean square of an update / its rate
  double weight_decay = 0;            ///< decoupled
  DecayRule decays = decay_matrices;  ///< which parameters decay
};

/// Adafactor, arXiv:1804.04235, with PyTorch's arithmetic: `p -= alpha g / sqrt(v)`, clipped, where
/// `alpha = max(eps2, rms(p)) min(lr, 1/sqrt(t))` and v is the outer product of the mean squares over rows and over
/// columns, which are all that it keeps of a matrix: `row_variance.*` and `column_variance.*`; `variance.*` of a
/// parameter with one axis or none.
class Adafactor : public Optimizer {
 public:
  /// Throws ValueError unless all settings but beta2_decay are finite and at least 0, clip is positive, and beta2_decay
  /// is finite and at most 0.
  explicit Adafactor(const AdafactorSettings& settings = {});

 private:
  std::vector<State> state_of(std::string_view name, const Tensor& value) const override;
  void apply(const std::vector<Update>& updates, double grad_scale) override;

  AdafactorSettings settings_;  // but for the learning rate, which is lr()
};

}  // namespace braid::nn
