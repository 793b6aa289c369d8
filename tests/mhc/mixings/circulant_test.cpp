#include <complex>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/products/matmul.h>
#include <braid/mhc/mixings/mixing.h>
#include <tests/mhc/support.h>

namespace braid::mhc::circulant_test {
namespace {

using Complex = std::complex<double>;

/// sum_k row_k e^(2 pi i k f / n): what a circulant matrix with that first row does to frequency f.
Complex transform(const std::vector<double>& row, std::int64_t f) {
  const auto n = static_cast<double>(row.size());
  Complex sum = 0;
  for (std::size_t k = 0; k < row.size(); ++k)
    sum += std::polar(row[k], 2 * std::numbers::pi * static_cast<double>(k) * static_cast<double>(f) / n);
  return sum;
}

TEST(Circulant, ProductsHaveTheProductOfTheSpectra) {
  Rng rng(1);
  for (const std::int64_t n : {2, 4, 5}) {
    const Mixing mixing("circulant", n, {.gamma = 0.7});
    Tensor product = eye(n, DType::f64);
    std::vector<Complex> spectrum(static_cast<std::size_t>(n), 1);
    for (int layer = 0; layer < 6; ++layer) {
      const Tensor h = mixing(random({n}, rng)).value();
      product = matrix_product(h, product);
      for (std::int64_t f = 0; f < n; ++f)
        spectrum[static_cast<std::size_t>(f)] *= transform(h.select(0, 0).to_vector<double>(), f);
    }
    for (std::int64_t f = 0; f < n; ++f) {
      const Complex eigenvalue = spectrum[static_cast<std::size_t>(f)];
      EXPECT_LT(std::abs(transform(product.select(0, 0).to_vector<double>(), f) - eigenvalue), 1e-14);
      for (std::int64_t i = 0; i < n; ++i) {  // the Fourier vector is an eigenvector
        const auto at = [&](std::int64_t k) {
          return std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(k * f) / static_cast<double>(n));
        };
        const std::vector<double> row = product.select(0, i).to_vector<double>();
        Complex sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += row[static_cast<std::size_t>(j)] * at(j);
        EXPECT_LT(std::abs(sum - eigenvalue * at(i)), 1e-14);
      }
    }
  }
}

TEST(Circulant, IsTheIdentityWhereGammaIsZero) {
  Rng rng(2);
  const Tensor h = Mixing("circulant", 3, {.gamma = 0})(random({3}, rng, 3)).value();
  EXPECT_EQ(largest_difference(h, eye(3, DType::f64)), 0);
}

}  // namespace
}  // namespace braid::mhc::circulant_test
