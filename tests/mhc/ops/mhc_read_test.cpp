#include <braid/mhc/ops/mhc_read.h>

#include <cmath>

#include <gtest/gtest.h>

#include <braid/autograd/composed.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>
#include <braid/mhc/streams/streams.h>

namespace braid::mhc::mhc_read_test {
namespace {

struct Sizes {
  std::int64_t tokens, n, channels;
};

void PrintTo(const Sizes& s, std::ostream* out) { *out << s.tokens << " tokens, n " << s.n << ", C " << s.channels; }

/// Two connections around f(u) = u * w + u, so that the boundary between them runs too.
Var two_sublayers(std::span<const Var> v, bool rows_last) {
  Streams x(v[0]);
  const Mixing mixing("sinkhorn", x.shape()[-2], {.exact = rows_last ? Marginal::rows : Marginal::columns});
  for (std::size_t layer : {0u, 1u}) {
    const std::span<const Var> p = v.subspan(1 + 4 * layer, 4);
    const Var u = x.read(MHCMaps{.phi = p[0], .alpha = p[1], .bias = p[2], .mixing = mixing, .eps = 1e-6});
    x.write(u * p[3] + u);
  }
  return x.value();
}

std::vector<Tensor> inputs_of(const Sizes& s, Rng& rng) {
  const std::int64_t m = s.n * (s.n + 2);
  std::vector<Tensor> inputs{randn({s.tokens, s.n, s.channels}, rng, DType::f64)};
  for (int layer = 0; layer < 2; ++layer) {
    inputs.push_back((randn({s.n * s.channels, m}, rng, DType::f64) * 0.3).value());
    inputs.push_back(randn({3}, rng, DType::f64));
    inputs.push_back(randn({m}, rng, DType::f64));
    inputs.push_back(randn({s.channels}, rng, DType::f64));
  }
  return inputs;
}

using Matrix = std::vector<std::vector<double>>;

/// Sinkhorn-Knopp by plain divisions.
Matrix sinkhorn(Matrix p, int iterations, bool rows_last) {
  const std::size_t n = p.size();
  for (auto& row : p)
    for (double& v : row) v = std::exp(v);
  for (int half = 0; half < 2 * iterations; ++half) {
    const bool rows = (half % 2 == 1) == rows_last;
    for (std::size_t a = 0; a < n; ++a) {
      double sum = 0;
      for (std::size_t b = 0; b < n; ++b) sum += rows ? p[a][b] : p[b][a];
      for (std::size_t b = 0; b < n; ++b) (rows ? p[a][b] : p[b][a]) /= sum;
    }
  }
  return p;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One token of one sublayer, in scalar loops from the equations. x [n][C] is replaced by the output.
void naive_sublayer(Matrix& x, std::span<const Tensor> p, bool rows_last) {
  const std::size_t n = x.size(), c = x[0].size();
  const auto phi = p[0].to_vector<double>(), alpha = p[1].to_vector<double>(), bias = p[2].to_vector<double>(),
             w = p[3].to_vector<double>();
  double squares = 0;
  for (const auto& row : x)
    for (double v : row) squares += v * v;
  const double r = std::sqrt(squares / static_cast<double>(n * c) + 1e-6);
  std::vector<double> h(n * (n + 2));
  for (std::size_t e = 0; e < h.size(); ++e) {
    double z = 0;
    for (std::size_t i = 0; i < n * c; ++i) z += x[i / c][i % c] * phi[i * h.size() + e];
    h[e] = alpha[e < n ? 0 : e < 2 * n ? 1 : 2] * z / r + bias[e];
  }
  Matrix res(n, std::vector<double>(n));
  for (std::size_t e = 0; e < n * n; ++e) res[e / n][e % n] = h[2 * n + e];
  res = sinkhorn(res, 20, rows_last);
  Matrix y(n, std::vector<double>(c));
  for (std::size_t k = 0; k < c; ++k) {
    double u = 0;
    for (std::size_t i = 0; i < n; ++i) u += sigmoid(h[i]) * x[i][k];
    const double f = u * w[k] + u;
    for (std::size_t i = 0; i < n; ++i) {
      y[i][k] = 2 * sigmoid(h[n + i]) * f;
      for (std::size_t j = 0; j < n; ++j) y[i][k] += res[i][j] * x[j][k];
    }
  }
  x = y;
}

class MHCReadTest : public testing::TestWithParam<Sizes> {};

TEST_P(MHCReadTest, MatchesScalarLoops) {
  const auto [tokens, n, channels] = GetParam();
  Rng rng(7);
  for (const bool rows_last : {false, true}) {
    const std::vector<Tensor> inputs = inputs_of(GetParam(), rng);
    const Tensor y = two_sublayers(std::vector<Var>(inputs.begin(), inputs.end()), rows_last).value();
    for (std::int64_t t = 0; t < tokens; ++t) {
      Matrix x(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i)
        x[static_cast<std::size_t>(i)] = inputs[0].select(0, t).select(0, i).to_vector<double>();
      for (std::size_t layer : {0u, 1u}) naive_sublayer(x, std::span(inputs).subspan(1 + 4 * layer, 4), rows_last);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t c = 0; c < channels; ++c)
          ASSERT_NEAR(y.at({t, i, c}), x[static_cast<std::size_t>(i)][static_cast<std::size_t>(c)], 1e-11);
    }
  }
}

TEST_P(MHCReadTest, GradientsPassGradcheck) {
  Rng rng(8);
  for (const bool rows_last : {false, true}) {
    const auto result =
        gradcheck([&](std::span<const Var> v) { return two_sublayers(v, rows_last); }, inputs_of(GetParam(), rng));
    EXPECT_TRUE(result.ok) << result.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MHCReadTest,
                         testing::Values(Sizes{0, 4, 8}, Sizes{1, 1, 1}, Sizes{1, 4, 5}, Sizes{2, 2, 3}, Sizes{3, 3, 7},
                                         Sizes{5, 5, 9}, Sizes{70, 4, 3}, Sizes{2, 7, 17}, Sizes{1, 9, 2}));

TEST(MHCRead, ReadsWithoutAWriteByAMixingWithLogits) {
  Rng rng(5);
  const Mixing mixing("sinkhorn", 4);
  const auto read = [&](std::span<const Var> v) {
    return Streams(v[0]).read(
        MHCMaps{.phi = v[1], .alpha = v[2], .bias = v[3], .mixing = mixing, .eps = 1e-6, .reads_only = true});
  };
  const std::vector<Tensor> inputs{randn({3, 4, 5}, rng, DType::f64), randn({20, 20}, rng, DType::f64),
                                   randn({2}, rng, DType::f64), randn({20}, rng, DType::f64)};
  const std::vector<Var> v(inputs.begin(), inputs.end());
  EXPECT_TRUE(gradcheck(read, inputs).ok);
  const std::vector<double> fused = read(v).value().to_vector<double>();
  const Composed scope;
  const std::vector<double> composed = read(v).value().to_vector<double>();
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], composed[i], 1e-13);
}

}  // namespace
}  // namespace braid::mhc::mhc_read_test
