#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace braid::stability {

/// The losses of a run, step by step, and the one place that says when a run has diverged.
class Losses {
 public:
  /// `divergence`: the multiple of the first loss that a loss must not exceed.
  explicit Losses(double divergence) : divergence_(divergence) {}

  void add(double loss) { losses_.push_back(loss); }

  /// Whether the newest loss is not finite or too large.
  bool diverged() const { return !reason().empty(); }
  /// Why; empty when it has not.
  std::string reason() const;

  /// The mean of the last tenth; of a run that has diverged, the last.
  double final_loss() const;

  /// `{"result": "trained", "reason": "", "steps": 200, "first_loss": 1.4, "final_loss": 0.1}`
  nlohmann::ordered_json result() const;

 private:
  double divergence_;
  std::vector<double> losses_;
};

}  // namespace braid::stability
