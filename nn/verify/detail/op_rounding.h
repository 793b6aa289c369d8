#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <braid/autograd/detail/recording.h>

namespace braid::nn::detail {

/// A loss of parameters that have this dtype.
using LossFunction = std::function<Var(std::span<const Var> params, DType dtype)>;

struct Evaluation {
  Tensor loss;
  std::vector<double> gradient;  // of all parameters, one after the other
};

using braid::detail::Recording;

/// The rounding errors of each op of an evaluation, forward and backward: what it computes in f64 from what it got in
/// low precision is the truth.
class Rounding {
 public:
  /// Throws ShapeError unless the loss is a scalar, Error when it is not deterministic or its ops depend on the dtype.
  Rounding(LossFunction loss, std::span<const Tensor> low);

  /// In low precision.
  const Evaluation& measured() const { return measured_; }
  /// In f64.
  const Evaluation& exact() const { return exact_; }
  /// The names of the ops that round, in the order of execution. The sums of cotangents are one of them, `accumulate`.
  std::vector<std::string> kinds() const;
  /// How the exact gradient changes when the ops of this name, and no others, round as they did.
  std::vector<double> change(const std::string& kind);

 private:
  LossFunction loss_;
  std::vector<Tensor> params_;  // f64
  std::vector<Recording::Op>
      traces_;  // what ops computed in low precision, then the errors in that: undefined for none
  Evaluation measured_, exact_;
  std::vector<double> last_sums_;  // the errors of summing the gradients themselves, which probes do not see
};

}  // namespace braid::nn::detail
