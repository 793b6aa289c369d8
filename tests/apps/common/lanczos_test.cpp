#include "../../../apps/common/lanczos.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops.h>

namespace braid::apps::lanczos_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;
using Vector = std::vector<double>;

constexpr std::int64_t kSize = 12;

/// A function of [12] whose Hessian is dense and has eigenvalues of both signs.
Var function(const Var& x) { return sum(sin(matmul(reshape(x, {3, 4}), reshape(x * x, {4, 3})))); }

Tensor point() {
  Rng rng(1);
  return randn({kSize}, rng, DType::f64);
}

Vector product(const Vector& v) {
  return hvp(function, point(), Tensor::of<double>({kSize}, v)).value().to_vector<double>();
}

/// Jacobi's method: rotations that zero one element after the other.
Vector eigenvalues(Vector a, std::size_t n) {
  for (int sweep = 0; sweep < 20; ++sweep)
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        const double angle = std::atan2(2 * a[p * n + q], a[q * n + q] - a[p * n + p]) / 2;
        const double c = std::cos(angle), s = std::sin(angle);
        const auto rotate = [&](double& x, double& y) { std::tie(x, y) = std::pair(c * x - s * y, s * x + c * y); };
        for (std::size_t i = 0; i < n; ++i) rotate(a[p * n + i], a[q * n + i]);
        for (std::size_t i = 0; i < n; ++i) rotate(a[i * n + p], a[i * n + q]);
      }
  Vector values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(a[i * n + i]);
  std::ranges::sort(values);
  return values;
}

TEST(Lanczos, FindsAllEigenvaluesOfAHessian) {
  const Vector expected = eigenvalues(hessian(function, point()).to_vector<double>(), kSize);
  EXPECT_LT(expected.front(), -1);
  EXPECT_GT(expected.back(), 1);
  const Vector found = lanczos(product, kSize, Rng(2), {.tolerance = 0});
  EXPECT_THAT(found, Pointwise(DoubleNear(1e-10), expected));
}

TEST(Lanczos, StopsWhenTheLargestIsFound) {
  Vector exact(1000);
  for (std::size_t i = 0; i < exact.size(); ++i) exact[i] = 1e-3 * static_cast<double>(i);
  exact[0] = 20, exact[1] = 30;
  int products = 0;
  const auto diagonal = [&](Vector v) {
    ++products;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] *= exact[i];
    return v;
  };
  const Vector found = lanczos(diagonal, 1000, Rng(3), {.tolerance = 1e-6});
  EXPECT_NEAR(found.back(), 30, 1e-4);
  EXPECT_LT(products, 20);
}

TEST(Lanczos, EndsWhenTheBasisIsComplete) {
  for (const double factor : {2.0, 2e-20}) {
    const auto multiplied = [=](Vector v) {
      for (double& x : v) x *= factor;
      return v;
    };
    EXPECT_THAT(lanczos(multiplied, 5, Rng(4)), ElementsAre(DoubleNear(factor, 1e-12 * factor)));
  }
  for (const double first : {0.0, 1.0})  // of one of them the start has more than of the other
    EXPECT_THAT(lanczos(
                    [=](const Vector& v) {
                      return Vector{first * v[0], (1 - first) * v[1]};
                    },
                    2, Rng(6)),
                ElementsAre(DoubleNear(0, 1e-12), DoubleNear(1, 1e-12)));
}

TEST(Lanczos, HasNoEigenvaluesOfWhatIsNotFinite) {
  const auto nan = [](Vector v) { return Vector(v.size(), std::numeric_limits<double>::quiet_NaN()); };
  EXPECT_THAT(lanczos(nan, 5, Rng(5)), ElementsAre(testing::IsNan()));
}

}  // namespace
}  // namespace braid::apps::lanczos_test
