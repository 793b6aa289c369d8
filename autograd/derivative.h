#pragma once
#include <functional>
#include <limits>
#include <vector>

namespace braid {

/// A derivative found from differences, and how far it can be trusted.
struct Derivative {
  double value = std::numeric_limits<double>::quiet_NaN();  ///< the derivative; NaN if none was found
  double error = std::numeric_limits<double>::infinity();   ///< an estimate of |value - truth|, on the safe side
  /// Whether the error is small beside the value or explained by rounding; or else quotients may not converge at all.
  bool settled = false;
  /// The bounds of the one-sided derivatives, and an estimate of their errors.
  double low = value, high = value, bound_error = error;

  /// Whether the bounds differ by more than their uncertainty, so that f is not differentiable there.
  bool has_kink() const;
};

/// The change of f by a step up and by a step down, f(step) - f(0) and f(0) - f(-step), and its rounding error.
struct Moves {
  double up = 0, down = 0, noise = 0;  ///< the two moves, and the rounding error
  /// The same for bounds: for a sum of terms, `low` adds the smaller of up and down of each term, `high` the larger.
  double low = 0, high = 0, bound_noise = 0;
};

/// Extrapolates difference quotients to step 0 (Richardson's scheme; the value that agrees best with its neighbors is
/// taken: Ridders, Advances in Engineering Software 4, 1982).
class Extrapolation {
 public:
  /// Steps must fall from call to call. A quotient that is not finite starts anew: the step left the domain of f.
  void add(double step, const Moves& moves);

  /// The best estimate so far; that of one side if f is finite on that side only.
  Derivative best() const;
  /// Whether smaller steps would only increase the error, since rounding errors grow as steps fall.
  bool exhausted() const;

 private:
  /// Values at falling steps and their limit at 0; their error is a series in step^power.
  struct Limit {
    int power;
    std::vector<double> steps = {}, row = {}, noises = {};  // row: the last one of the scheme, by order
    double value = std::numeric_limits<double>::quiet_NaN(), error = std::numeric_limits<double>::infinity();
    double rounding = 0;  // the part of the error that rounding explains
    void add(double step, double quotient, double noise);
  };

  Limit central_{2}, up_{1}, down_{1}, low_{1}, high_{1};
};

/// Calls add(step) of an Extrapolation at falling steps, from `scale` / 20 on, until `done(best)` or no smaller step
/// can help. `add` returns the best so far.
Derivative descend(double scale, const std::function<const Extrapolation&(double step)>& add,
                   const std::function<bool(const Derivative&)>& done);

}  // namespace braid
