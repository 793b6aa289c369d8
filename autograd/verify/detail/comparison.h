#pragma once
#include <optional>
#include <string>
#include <vector>

#include <braid/autograd/verify/detail/differences.h>
#include <braid/autograd/verify/detail/lines.h>
#include <braid/autograd/verify/verdict.h>

namespace braid::detail {

/// Throws DTypeError naming `what` unless x is f64.
void check_f64(const Tensor& x, const std::string& what);

/// The gradients of <dy, f(inputs)> as one vector: by vjps for constants, by rules for variables of higher order.
GradcheckFunction gradient_function(const GradcheckFunction& f, const Tensor& dy);

/// Compares <J^T w, v> by vjps with <w, J v> by rules, for the Jacobian J of f and random v and w: no step, and no
/// kinks, since both go the way that f went. And the tolerance: 1e-13 of the terms, or what rounding explains.
std::pair<CheckedDerivative, double> check_without_steps(const GradcheckFunction& f, List<Tensor> inputs,
                                                         std::uint64_t seed);

/// The gradients of <dy, f(inputs)> at a point, compared with differences along lines.
class Comparison {
 public:
  /// Runs f, and its backward pass twice.
  explicit Comparison(Subject subject);

  /// A sentence that says why gradients cannot be compared here; empty when they can.
  const std::string& obstacle() const { return obstacle_; }
  const Subject& subject() const { return subject_; }
  const Tensor& dy() const { return dy_; }
  Rng& rng() { return rng_; }
  /// The rounding error of the outputs, in units of the error of storing them.
  double amplification() const;

  CheckedDerivative check(Line line);

 private:
  /// The derivative along a line by the gradients, and what may be wrong with it.
  struct Analytic {
    double value = 0;
    double floor = 0;     // smaller derivatives are compared with this one
    double rounding = 0;  // the uncertainty of the value
  };
  /// A derivative by differences beside the analytic one.
  struct Compared {
    CheckedDerivative checked;
    Derivative numeric;
  };

  std::vector<Tensor> compute_gradients(List<Tensor> inputs, const Tensor& dy, Probe* probe = nullptr) const;
  std::vector<Tensor> gradients_on(const Line& line, double t, const Tensor& turn);
  std::vector<Tensor> rounding_of_gradients();
  void add_jumps(const Line& line);
  double rounding() const { return root_square_sum(dy_, noise_); }
  bool is_negligible(const Line& line, const CheckedDerivative& checked) const;
  std::vector<Tensor> point_on(const Line& line, double t) const;
  Tensor evaluate(const Line& line, double t) const;
  Moves moves_along(const Line& line, double step) const;
  Analytic analytic_along(const Line& line) const;
  Derivative derivative_along(const Line& line, double scale, double floor) const;
  Compared compare(const Line& line) const;
  void judge_again(const Line& line, Compared& compared);
  bool may_hide_a_kink(const Line& line, double difference) const;
  bool jumps(const Line& line, const Compared& compared);
  std::vector<Comparison>& beside();

  Subject subject_;
  Rng rng_;
  Tensor y_, dy_;
  std::string obstacle_;
  Tensor noise_;                  // the rounding error of each element of y
  std::vector<Tensor> rounding_;  // how much gradients change with the last bits of the inputs
  std::vector<Tensor> jumps_;     // how far they jump beside this point
  bool has_neighbors_ = true;
  std::optional<std::vector<Comparison>> beside_;  // at points near by, which have no neighbors themselves
};

}  // namespace braid::detail
