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

/// The distances of the values. They are to be far enough apart to show the stairs of a coarse rounding. Rounding is
/// the same at the first two, where kinks near by look smaller at the second; where y bends at both, they come closer.
constexpr std::array kSteps{0x1p-10, 0x1p-14, 0x1p-24, 0x1p-40};
constexpr std::size_t kAlways = 2;

using Values = std::array<Tensor, Sequence().size()>;

/// Fills in the errors that are NaN, which the last step leaves none of, or lowers what is there.
void measure(const Values& y, std::size_t step, Tensor& errors) {
  double* error = errors.mutable_data<double>();
  for (std::int64_t element = 0; element < errors.numel(); ++element) {
    if (step >= kAlways && !std::isnan(error[element])) continue;
    Sequence g{};
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = y[i].data<double>()[element];
    const double fine = roughness(g, 1);
    // What bends shows 16 times as much at twice the distance; where it is NaN, y has left its domain.
    const bool unclear = std::isnan(fine) || roughness(g, 2) > 4 * fine;
    if (!unclear || step + 1 == kSteps.size()) error[element] = std::fmin(error[element], std::isnan(fine) ? 0 : fine);
  }
}

bool any_nan(const Tensor& x) {
  return std::ranges::any_of(x.to_vector<double>(), [](double v) { return std::isnan(v); });
}

}  // namespace

Tensor rounding_errors(const std::function<Tensor(double t)>& y) {
  Tensor errors;
  for (std::size_t step = 0; step < kSteps.size(); ++step) {
    if (step >= kAlways && !any_nan(errors)) break;
    Values values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = y(static_cast<double>(i) * kSteps[step]).contiguous();
    if (step == 0) errors = full(values.front().shape(), std::numeric_limits<double>::quiet_NaN(), DType::f64);
    measure(values, step, errors);
  }
  return errors;
}

}  // namespace braid::detail
