#include <braid/autograd/detail/rounding.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace braid::detail {
namespace {

using Sequence = std::array<double, 13>;

/// The standard deviation of what is not smooth in values at equal distances, from the median of their fourth
/// differences, of which a kink reaches less than half (More and Wild, SIAM J. Sci. Comput. 33, 2011).
double roughness(const Sequence& g, std::size_t apart) {
  std::array<double, 9> sizes{};
  const std::size_t count = g.size() - 4 * apart;
  for (std::size_t i = 0; i < count; ++i)
    sizes[i] = std::abs(g[i] - 4 * g[i + apart] + 6 * g[i + 2 * apart] - 4 * g[i + 3 * apart] + g[i + 4 * apart]);
  if (!std::ranges::all_of(sizes, [](double v) { return std::isfinite(v); })) return NAN;
  std::nth_element(sizes.begin(), sizes.begin() + count / 2, sizes.begin() + count);
  return sizes[count / 2] / (0.6745 * std::sqrt(70.0));
}

/// The distances of the values. The first are far enough apart to show the stairs of f32. Rounding is the same at all
/// of them, but kinks and poles near by look smaller at the closer ones. The others are for what bends even there.
constexpr std::array kSteps{0x1p-10, 0x1p-14, 0x1p-19, 0x1p-24, 0x1p-40};
constexpr std::size_t kStairs = 3;

/// Of what is stored: less is not looked at again.
constexpr double kFine = 0x1p10 * std::numeric_limits<double>::epsilon();

using Values = std::array<Tensor, Sequence().size()>;

/// Fills in the errors that are NaN, which the last step leaves none of, and lowers those that are not fine. Returns
/// whether any of them is left for the next step.
bool measure(const Values& y, std::size_t step, Tensor& errors) {
  const bool last = step + 1 == kSteps.size();
  double* error = errors.mutable_data<double>();
  bool again = false;
  for (std::int64_t element = 0; element < errors.numel(); ++element) {
    Sequence g{};
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = y[i].data<double>()[element];
    const auto is_left = [&](std::size_t at) {
      return std::isnan(error[element]) || (at < kStairs && error[element] > kFine * std::abs(g.front()));
    };
    if (!is_left(step)) continue;
    const double fine = roughness(g, 1);
    if (std::isnan(error[element])) {
      // What bends shows 16 times as much at twice the distance; where it is NaN, y has left its domain.
      const bool unclear = std::isnan(fine) || roughness(g, 2) > 4 * fine;
      if (!unclear || last) error[element] = std::isnan(fine) ? 0 : fine;
    } else if (std::ranges::adjacent_find(g) == g.end()) {  // else they may all be on one stair
      error[element] = std::fmin(error[element], fine);
    }
    again |= is_left(step + 1);
  }
  return again;
}

}  // namespace

Tensor rounding_errors(const std::function<Tensor(double t)>& y) {
  Tensor errors;
  for (std::size_t step = 0; step < kSteps.size(); ++step) {
    Values values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = y(static_cast<double>(i) * kSteps[step]).contiguous();
    if (step == 0) errors = full(values.front().shape(), std::numeric_limits<double>::quiet_NaN(), DType::f64);
    if (!measure(values, step, errors)) break;
  }
  return errors;
}

}  // namespace braid::detail
