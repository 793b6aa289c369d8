#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include <braid/autograd/derivative.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>
#include <braid/core/tensor.h>

// Tensors of f64 in differences. Functions of it take any layout.

namespace braid::detail {

/// Signs with sizes in [1, 1.5]: never so small that an error hides.
Tensor random_signs(const Shape& shape, Rng& rng);

/// How far each element of x may move for differences: its size, at least a tenth of x's root mean square; 1 where all
/// are next to 0.
Tensor scales(const Tensor& x);

/// A direction in which each element moves by its scale.
Tensor random_direction(const Tensor& x, Rng& rng);

/// 1 at one element, 0 elsewhere.
Tensor unit(const Shape& shape, std::int64_t flat);

/// The elements from `begin` to `end` of x, row-major; 0 elsewhere.
Tensor only(const Tensor& x, std::int64_t begin, std::int64_t end);

/// Finds one of `count` elements for which `wrong` holds, given that it holds for all together, by halving.
std::int64_t bisect(std::int64_t count, const std::function<bool(std::int64_t begin, std::int64_t end)>& wrong);

/// `x + t * direction`
Tensor moved(const Tensor& x, const Tensor& direction, double t);

/// sum(a * b) over the elements where b is not 0; undefined ones are zero.
double dot(const Tensor& a, const Tensor& b);

/// sqrt(sum((a * b)^2))
double root_square_sum(const Tensor& a, const Tensor& b);

/// The moves of <dy, y> from y(0) up to y(step) and from y(-step). Adds up over several outputs.
struct Movement {
  double up = 0, down = 0, low = 0, high = 0, noise = 0, square_noise = 0;

  /// `noise`: the rounding error of each element of y, or else that of storing it, `amplification` times.
  void add(const Tensor& dy, const Tensor& above, const Tensor& y, const Tensor& below, const Tensor& noise,
           double amplification = 1);
  /// What is done to the inputs first is rounded too, and that moves y as the inputs would: `scale` is theirs.
  Moves moves(double step, double scale) const;
};

/// `element [1, 2]`
std::string element_name(const Shape& shape, std::int64_t flat);

/// The gradients of <dy, f(inputs)>, the way users get them.
std::vector<Tensor> gradients_at(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy,
                                 Probe* probe = nullptr);

}  // namespace braid::detail
