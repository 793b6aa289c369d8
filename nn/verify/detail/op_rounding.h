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
  std::vector<double> gradient;  // of all parameters, concatenated
};

using braid::detail::Recording;

/// The rounding errors of each op of an evaluation, forward and backward, compared with the same op in f64 on the same
/// inputs.
class Rounding {
 public:
  /// Throws ShapeError unless the loss is a scalar, Error when it is not deterministic or its ops depend on the dtype.
  Rounding(LossFunction loss, const std::vector<Tensor>& low);

  /// The evaluation in low precision.
  const Evaluation& measured() const { return measured_; }
  /// The evaluation in f64.
  const Evaluation& exact() const { return exact_; }
  /// The names of the ops that round, in the order of execution. The sums of cotangents are one of them, `accumulate`.
  std::vector<std::string> kinds() const;
  /// The change of the exact gradient when only the ops of this name round as they did in low precision.
  std::vector<double> change(const std::string& kind);

 private:
  LossFunction loss_;
  std::vector<Tensor> params_;         // f64
  std::vector<Recording::Op> traces_;  // of ops in low precision, later their errors: undefined for none
  Evaluation measured_, exact_;
  std::vector<double> last_sums_;  // the errors of summing the gradients themselves, which probes do not see
};

}  // namespace braid::nn::detail
