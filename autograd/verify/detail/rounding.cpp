#include <braid/autograd/verify/detail/differences.h>

#include <array>
#include <limits>
#include <numeric>
#include <utility>

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

/// Whether most values differ from the one before: or else a coarse rounding may lie between them.
bool moves(const Sequence& g) {
  return std::inner_product(g.begin() + 1, g.end(), g.begin(), 0, std::plus(), std::not_equal_to()) > 9;
}

double largest_move(const Sequence& g) {
  double largest = 0;
  for (std::size_t i = 1; i < g.size(); ++i) largest = std::max(largest, std::abs(g[i] - g[i - 1]));
  return largest;
}

/// Whether differences may be more than rounding: curvature shows 16 times as much at twice the distance, kinks and
/// oscillations are large beside the moves, and large values round more. NaN: y has left its domain.
bool is_unclear(const Sequence& g, double fine) {
  return !(roughness(g, 2) <= 4 * fine) || fine > 1e-6 * largest_move(g) ||
         std::abs(g.back()) > 1e3 * std::abs(g.front());
}

/// The rounding error of an element, as far as it has been measured.
struct Measured {
  double error = std::numeric_limits<double>::quiet_NaN();
  double first_move = 0;
  bool clear = false;

  void add(const Sequence& g) {
    if (clear || (!std::isnan(error) && !moves(g))) return;
    const double fine = roughness(g, 1);
    if (std::isnan(error)) first_move = largest_move(g);
    // Rounding, unlike oscillations, is small beside the first move and the same at any distance.
    const bool same = fine > 0.1 * error && error < 1e-2 * first_move && roughness(g, 2) <= 4 * fine;
    clear = same || !is_unclear(g, fine);
    if (!(fine >= error)) error = fine;
  }
};

}  // namespace

Tensor rounding_errors(const std::function<Tensor(double t)>& y, const std::function<Tensor(double t)>& own) {
  std::vector<Measured> elements;
  Tensor errors;
  // The first distance is far enough to show the steps of a coarse rounding.
  for (const auto& [value, step] : {std::pair(&y, 0x1p-10), {&y, 0x1p-24}, {&y, 0x1p-40}, {&own, 0x1p-24}}) {
    std::array<Tensor, Sequence().size()> values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = (*value)(static_cast<double>(i) * step).contiguous();
    if (!errors.defined()) errors = zeros(values[0].shape(), DType::f64);
    elements.resize(static_cast<std::size_t>(errors.numel()));
    for (std::size_t element = 0; element < elements.size(); ++element) {
      Sequence g{};
      for (std::size_t i = 0; i < g.size(); ++i) g[i] = values[i].data<double>()[element];
      elements[element].add(g);
    }
    if (std::ranges::all_of(elements, &Measured::clear)) break;
  }
  std::ranges::transform(elements, errors.mutable_data<double>(),
                         [](const Measured& m) { return std::isnan(m.error) ? 0 : m.error; });
  return errors;
}

}  // namespace braid::detail
