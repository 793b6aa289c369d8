#include "lanczos.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace braid::apps {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// `y += factor x`
void add(Vector& y, double factor, const Vector& x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

Vector random_vector(std::int64_t n, Rng& rng) { return randn({n}, rng, DType::f64).to_vector<double>(); }

/// A symmetric tridiagonal matrix.
struct Tridiagonal {
  Vector diagonal, beside;  // beside[i] is at [i, i + 1]

  /// The number of eigenvalues below x: of negative pivots of A - x.
  std::size_t below(double x) const {
    std::size_t count = 0;
    double pivot = 1;
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      const double b = i == 0 ? 0 : beside[i - 1];
      pivot = diagonal[i] - x - b * b / (pivot == 0 ? std::numeric_limits<double>::min() : pivot);
      if (pivot < 0) ++count;
    }
    return count;
  }

  /// All of them, ascending, by bisection between Gershgorin's bounds.
  Vector eigenvalues() const {
    double bound = 0;
    for (std::size_t i = 0; i < diagonal.size(); ++i)
      bound =
          std::max(bound, std::abs(diagonal[i]) + (i > 0 ? beside[i - 1] : 0) + (i < beside.size() ? beside[i] : 0));
    Vector values;
    for (std::size_t k = 0; k < diagonal.size(); ++k) {
      double low = -bound, high = bound;
      while (high - low > 1e-15 * bound) {
        const double middle = (low + high) / 2;
        (below(middle) > k ? high : low) = middle;
      }
      values.push_back(low);
    }
    return values;
  }
};

}  // namespace

std::vector<double> lanczos(const SymmetricProduct& product, std::int64_t n, Rng rng, const LanczosSettings& settings) {
  std::vector<Vector> basis, found;  // the eigenvalues after each product
  Tridiagonal projected;
  Vector next = random_vector(n, rng);
  double length = std::sqrt(dot(next, next));
  while (std::ssize(basis) < std::min(n, settings.products)) {
    for (double& x : next) x /= length;
    basis.push_back(std::move(next));
    if (basis.size() > 1) projected.beside.push_back(length);
    next = product(basis.back());
    projected.diagonal.push_back(dot(next, basis.back()));
    if (!std::isfinite(projected.diagonal.back())) return {std::numeric_limits<double>::quiet_NaN()};
    for (int twice = 0; twice < 2; ++twice)
      for (const Vector& q : basis) add(next, -dot(next, q), q);
    length = std::sqrt(dot(next, next));
    found.push_back(projected.eigenvalues());
    const double largest = found.back().back(), size = std::max(std::abs(found.back().front()), std::abs(largest));
    if (length <= 1e-12 * size) break;  // nothing is left outside the basis
    if (found.size() > 2 && std::abs(largest - found.end()[-3].back()) <= settings.tolerance * std::abs(largest)) break;
  }
  return found.back();
}

}  // namespace braid::apps
