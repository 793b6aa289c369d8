// What mixing is worth: a network with static invertible mixings H_k is one that does not mix, in other coordinates.
// With G_0 = 1 and G_(k+1) = H_k G_k, X_k = G_k Z_k, the streams Z are read by G_k^T a_k, written by G_(k+1)^-1 b_k and
// reduced by G_L^T a_out.
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/products/matmul.h>
#include <braid/mhc/mixings/detail/family.h>
#include <braid/mhc/ops/read_write.h>
#include <tests/mhc/support.h>

namespace braid::mhc::gauge_test {
namespace {

/// What one sublayer does to the streams.
struct Sublayer {
  Tensor read, write, mix;  // [n], [n], [n, n]
  TestLayer layer;
};

Var run(const std::vector<Sublayer>& network, const Tensor& out, const Tensor& x) {
  Var streams = x;
  for (const Sublayer& s : network)
    streams = write_streams(s.mix, s.write, streams, s.layer(read_streams(s.read, streams)));
  return read_streams(out, streams);
}

/// By Gauss-Jordan elimination, the largest pivot first.
Tensor inverse(const Tensor& matrix) {
  const std::int64_t n = matrix.size(0);
  std::vector<double> a = matrix.to_vector<double>(), b = eye(n, DType::f64).to_vector<double>();
  const auto row = [n](std::vector<double>& m, std::int64_t i) { return m.begin() + i * n; };
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(row(a, i)[k]) > std::abs(row(a, pivot)[k])) pivot = i;
    std::swap_ranges(row(a, k), row(a, k) + n, row(a, pivot));
    std::swap_ranges(row(b, k), row(b, k) + n, row(b, pivot));
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = row(a, i)[k] / row(a, k)[k];
      for (std::int64_t j = 0; j < n; ++j) {
        row(a, i)[j] -= factor * row(a, k)[j];
        row(b, i)[j] -= factor * row(b, k)[j];
      }
    }
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) row(b, i)[j] /= row(a, i)[i];
  return Tensor::of<double>({n, n}, b);
}

Tensor apply(const Tensor& matrix, const Tensor& vector) {
  return matrix_product(matrix, vector.reshape({vector.size(0), 1})).reshape({vector.size(0)});
}

TEST(Gauge, StaticMixingsAreChangedReadsAndWritesOfANetworkThatDoesNotMix) {
  constexpr std::int64_t n = 4, channels = 6;
  for (const mixings::Family* family : mixings::families()) {
    Rng rng(3);
    const Mixing mixing(family->name, n);
    std::vector<Sublayer> mixed, unmixed;
    Tensor g = eye(n, DType::f64);
    for (int k = 0; k < 6; ++k) {
      const Tensor logits = (Var(mixing.identity()) + random({mixing.logits()}, rng, 0.15)).value();
      mixed.push_back({random({n}, rng, 0.5), random({n}, rng), mixing(logits).value(), TestLayer(channels, rng)});
      const Sublayer& s = mixed.back();
      const Tensor next = matrix_product(s.mix, g);
      unmixed.push_back(
          {apply(g.transpose().contiguous(), s.read), apply(inverse(next), s.write), eye(n, DType::f64), s.layer});
      g = next;
    }
    const Tensor out = random({n}, rng), x = random({5, n, channels}, rng);
    const Tensor expected = run(mixed, out, x).value();
    const Tensor got = run(unmixed, apply(g.transpose().contiguous(), out), x).value();
    EXPECT_LT(largest_difference(got, expected), 1e-12) << family->name;
  }
}

}  // namespace
}  // namespace braid::mhc::gauge_test
