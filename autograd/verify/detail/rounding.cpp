#include <braid/autograd/verify/detail/rounding.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include <braid/autograd/ops/arithmetic.h>

namespace braid::detail {
namespace {

using Sequence = std::array<double, 13>;

/// The standard deviation of the noise in values at equal distances, from the median of their fourth differences, fewer
/// than half of which a kink affects (More and Wild, SIAM J. Sci. Comput. 33, 2011).
double roughness(const Sequence& g, std::size_t apart) {
  std::array<double, 9> sizes{};
  const std::size_t count = g.size() - 4 * apart;
  for (std::size_t i = 0; i < count; ++i)
    sizes[i] = std::abs(g[i] - 4 * g[i + apart] + 6 * g[i + 2 * apart] - 4 * g[i + 3 * apart] + g[i + 4 * apart]);
  if (!std::ranges::all_of(sizes, [](double v) { return std::isfinite(v); })) return NAN;
  std::nth_element(sizes.begin(), sizes.begin() + count / 2, sizes.begin() + count);
  return sizes[count / 2] / (0.6745 * std::sqrt(70.0));
}

/// The distances of the values. The first is far enough to show the steps of a coarse rounding; where y bends at that
/// distance, the next smaller one counts.
constexpr std::array kSteps{0x1p-10, 0x1p-24, 0x1p-40};
constexpr double kBesideKinks = 0x1p-19;

/// Fills in the errors that are still NaN and returns whether some need smaller steps.
bool measure(const std::array<Tensor, Sequence().size()>& y, bool last, Tensor& errors) {
  double* error = errors.mutable_data<double>();
  bool again = false;
  for (std::int64_t element = 0; element < errors.numel(); ++element) {
    if (!std::isnan(error[element])) continue;
    Sequence g{};
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = y[i].data<double>()[element];
    const double fine = roughness(g, 1);
    // Curvature shows 16 times as much at twice the distance; NaN: y has left its domain.
    const bool unclear = std::isnan(fine) || roughness(g, 2) > 4 * fine;
    if (!unclear || last) error[element] = std::isnan(fine) ? 0 : fine;
    again |= unclear;
  }
  return again;
}

}  // namespace

Tensor rounding_errors(const std::function<Tensor(double t)>& y, bool beside_kinks) {
  const auto steps = beside_kinks ? std::span<const double>(&kBesideKinks, 1) : std::span<const double>(kSteps);
  Tensor errors;
  for (const double step : steps) {
    std::array<Tensor, Sequence().size()> values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = y(static_cast<double>(i) * step).contiguous();
    if (!errors.defined()) errors = full(values[0].shape(), std::numeric_limits<double>::quiet_NaN(), DType::f64);
    if (!measure(values, step == steps.back(), errors)) break;
  }
  return errors;
}

void RoundsDifferently::propagated(const RecordedOp&, std::vector<Tensor>& dxs) {
  for (Tensor& dx : dxs)
    if (dx.defined() && dx.dtype() == DType::f64) dx = Tensor(dx * (1 + 0x1p-50 * rand(dx.shape(), rng_, DType::f64)));
}

}  // namespace braid::detail
