#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace braid::stability {

/// The losses of a run, step by step. Decides whether it has diverged.
class Losses {
 public:
  /// `divergence`: the multiple of the first loss that a loss must not exceed.
  explicit Losses(double divergence) : divergence_(divergence) {}

  void add(double loss) { losses_.push_back(loss); }

  /// Whether the newest loss is not finite or too large.
  bool diverged() const { return !reason().empty(); }
  /// The reason of divergence; empty if it has not diverged.
  std::string reason() const;

  /// The mean of the last tenth of the losses; the last loss of a run that has diverged.
  double final_loss() const;

  /// `{"result": "trained", "reason": "", "steps": 200, "first_loss": 1.4, "final_loss": 0.1}`
  nlohmann::ordered_json result() const;

 private:
  double divergence_;
  std::vector<double> losses_;
};

}  // namespace braid::stability
