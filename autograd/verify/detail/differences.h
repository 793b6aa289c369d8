#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <braid/autograd/derivative.h>
#include <braid/autograd/verify/verdict.h>
#include <braid/core/random.h>
#include <braid/core/tensor.h>

// Arithmetic of f64 tensors for differences. The functions take any layout.

namespace braid::detail {

/// The rounding of f64.
inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// Random signs times U(1, 1.5): no element is so small that an error hides in it.
Tensor random_signs(const Shape& shape, Rng& rng);

/// The unit of steps for each element of x: its size, at least a tenth of x's root mean square; 1 if all are near 0.
Tensor scales(const Tensor& x);

/// A direction in which each element moves by its scale.
Tensor random_direction(const Tensor& x, Rng& rng);

/// The elements from `begin` to `end` of x, row-major; 0 elsewhere.
Tensor only(const Tensor& x, std::int64_t begin, std::int64_t end);

/// Finds one of `count` elements for which `wrong` holds, given that it holds for all together, by halving.
std::int64_t bisect(std::int64_t count, const std::function<bool(std::int64_t begin, std::int64_t end)>& wrong);

/// `x + t * direction`
Tensor moved(const Tensor& x, const Tensor& direction, double t);

/// sum(a * b) over the elements where b is not 0; undefined tensors count as zeros.
double dot(const Tensor& a, const Tensor& b);

/// sqrt(sum((a * b)^2)), as dot() does
double root_square_sum(const Tensor& a, const Tensor& b);

/// A sum of inner products <a, b>, its terms for each defined b, and the root of the sum of its squared terms.
struct InnerProduct {
  double value = 0, size = 0;
  std::vector<double> terms = {};

  InnerProduct() = default;
  InnerProduct(const auto& a, const auto& b) {
    for (std::size_t i = 0; i < a.size(); ++i) add(Var(a[i]).value(), Var(b[i]).value());
  }
  void add(const Tensor& a, const Tensor& b) {
    if (b.defined()) terms.push_back(dot(a, b));
    value += dot(a, b);
    size = std::hypot(size, root_square_sum(a, b));
  }
};

/// The moves of <dy, y> from y(0) to y(step) and from y(-step) to y(0), summed over several outputs.
struct Movement {
  double up = 0, down = 0, low = 0, high = 0, noise = 0, square_noise = 0;

  /// `noise`: the rounding error of each element of y; if undefined, `amplification` times that of storing it.
  void add(const Tensor& dy, const Tensor& above, const Tensor& y, const Tensor& below, const Tensor& noise,
           double amplification = 1);
  /// Includes the rounding of the moved inputs, whose size is `scale`, as a rounding error of y.
  Moves moves(double step, double scale) const;
};

/// Takes the steps of several searches for derivatives together: `take(step)` adds to the Extrapolation `numeric` of
/// each, until all are exhausted or certain to a tenth of the tolerance, relative to their value or `floor()`.
void descend_together(double scale, const auto& searches, double tolerance, const auto& take) {
  if (searches.empty()) return;
  const auto settled = [&](const auto& search) {
    const Derivative d = search.numeric.best();
    return search.numeric.exhausted() || d.error <= 0.1 * tolerance * std::max(std::abs(d.value), search.floor());
  };
  const auto add = [&](double step) -> const Extrapolation& {
    take(step);
    const auto slow = std::ranges::find_if_not(searches, settled);
    return (slow == searches.end() ? searches.front() : *slow).numeric;
  };
  descend(scale, add, [&](const Derivative&) { return std::ranges::all_of(searches, settled); });
}

/// The rounding error of each element of y(t), f64, near t = 0: the size of its part that is not smooth. Where that is
/// not clear, because y bends or oscillates, smaller distances tell, and at last those of own(t).
Tensor rounding_errors(const std::function<Tensor(double t)>& y, const std::function<Tensor(double t)>& own);

/// `element [1, 2]`
std::string element_name(const Shape& shape, std::int64_t i);

/// The gradients of <dy, f(inputs)>, by a tape.
std::vector<Tensor> gradients_at(const GradcheckFunction& f, List<Tensor> inputs, const Tensor& dy,
                                 Probe* probe = nullptr);

}  // namespace braid::detail
