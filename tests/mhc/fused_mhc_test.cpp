#include <braid/mhc/ops/mhc_read.h>

#include <cmath>

#include <gtest/gtest.h>

#include <braid/autograd/gradcheck.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/core/random.h>
#include <braid/mhc/path.h>

namespace braid::mhc {
namespace {

struct Sizes {
  std::int64_t tokens, n, channels;
};

void PrintTo(const Sizes& s, std::ostream* out) { *out << s.tokens << " tokens, n " << s.n << ", C " << s.channels; }

/// Two connections around f(u) = u * w + u, so that the boundary between them runs too.
Var two_sublayers(std::span<const Var> v, bool rows_last) {
  FusedStream stream(v[0]);
  for (std::size_t layer : {0u, 1u}) {
    const Var u = stream.read({v[1 + 4 * layer], v[2 + 4 * layer], v[3 + 4 * layer], 20, rows_last, 1e-6});
    stream.write(u * v[4 + 4 * layer] + u);
  }
  return stream.streams();
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

class FusedMhcTest : public testing::TestWithParam<Sizes> {};

TEST_P(FusedMhcTest, MatchesScalarLoops) {
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

TEST_P(FusedMhcTest, GradientsPassGradcheck) {
  Rng rng(8);
  for (const bool rows_last : {false, true}) {
    const auto result =
        gradcheck([&](std::span<const Var> v) { return two_sublayers(v, rows_last); }, inputs_of(GetParam(), rng));
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(FusedStream, RejectsStepsOutOfOrderAndShapesThatDoNotFit) {
  Rng rng(9);
  const std::vector<Tensor> v = inputs_of({2, 4, 3}, rng);
  const Var phi = v[1], alpha = v[2], bias = v[3];
  const FusedMhc connection{phi, alpha, bias, 20, true, 1e-6};
  FusedStream stream(v[0]);
  EXPECT_THROW(stream.write(v[0].select(1, 0)), Error);
  const Var u = stream.read(connection);
  EXPECT_THROW(stream.read(connection), Error);
  EXPECT_THROW(stream.streams(), Error);
  EXPECT_THROW(stream.write(v[0]), ShapeError);
  stream.write(u);
  EXPECT_EQ(stream.streams().shape(), v[0].shape());
  EXPECT_THROW(FusedStream(v[0]).read({alpha, alpha, bias, 20, true, 1e-6}), ShapeError);
  EXPECT_THROW(FusedStream(v[0].to(DType::f32)).read(connection), DTypeError);
}

/// Gradients of sum(streams^2) / 2 after `depth` sublayers, and the most memory that was alive on the way.
std::pair<std::vector<Tensor>, std::int64_t> deep_gradients(std::int64_t keep_every, const Sizes& sizes,
                                                            int depth = 7) {
  Rng rng(11);
  std::vector<Tensor> inputs = inputs_of(sizes, rng);
  reset_peak_memory();
  const std::int64_t before = memory_stats().live_bytes;
  Tape tape;
  std::vector<Var> v;
  for (const Tensor& input : inputs) v.push_back(tape.watch(input));
  {
    FusedStream stream(v[0], keep_every);
    for (int layer = 0; layer < depth; ++layer) {
      const Var u = stream.read({v[1], v[2], v[3], 5, true, 1e-6});
      stream.write(u * v[4]);
    }
    const Var y = stream.streams();
    tape.backward(y, y.value());
  }
  std::vector<Tensor> grads;
  for (const Var& input : v) grads.push_back(tape.gradient(input));
  return {grads, memory_stats().peak_bytes - before};
}

TEST(FusedStream, RecomputesStreamsWithTheSameBits) {
  for (const Sizes sizes : {Sizes{70, 4, 3}, Sizes{5, 3, 9}, Sizes{2, 6, 5}, Sizes{0, 4, 2}}) {
    const auto kept = deep_gradients(1, sizes).first;
    for (const std::int64_t every : {2, 3, 7, 100}) {
      const auto recomputed = deep_gradients(every, sizes).first;
      for (std::size_t i = 0; i < kept.size(); ++i)
        EXPECT_EQ(kept[i].to_vector<double>(), recomputed[i].to_vector<double>()) << "input " << i;
    }
  }
}

TEST(FusedStream, KeepsLessWhenItRecomputes) {
  const Sizes sizes{128, 4, 128};
  const auto peak = [&](std::int64_t keep_every) {
    return static_cast<double>(deep_gradients(keep_every, sizes, 24).second);
  };
  EXPECT_LT(peak(4), 0.7 * peak(1));
}

TEST(FusedStream, PlansAtTheLeastMemory) {
  // Kept: n C of a token at every k-th of L sublayers; recomputed at once: (n + 2) C at each of k.
  for (const std::int64_t n : {1, 2, 4, 8})
    for (const std::int64_t depth : {1, 7, 12, 48, 200}) {
      const auto memory = [&](std::int64_t k) {
        return static_cast<double>(n * depth) / static_cast<double>(k) + static_cast<double>((n + 2) * k);
      };
      const std::int64_t planned = keep_interval(n, depth);
      EXPECT_LE(memory(planned), 1.02 * std::min(memory(planned + 1), memory(std::max<std::int64_t>(1, planned - 1))));
    }
  EXPECT_EQ(keep_interval(4, 0), 1);
  EXPECT_THROW(keep_interval(0, 1), ValueError);
  EXPECT_THROW(keep_interval(4, -1), ValueError);
  EXPECT_THROW(FusedStream(zeros({1, 2, 3}), 0), ValueError);
}

TEST(FusedStream, ParsesPathsByName) {
  EXPECT_EQ(path_named("reference"), Path::reference);
  EXPECT_THROW(path_named("fast"), ValueError);
}

INSTANTIATE_TEST_SUITE_P(Shapes, FusedMhcTest,
                         testing::Values(Sizes{0, 4, 8}, Sizes{1, 1, 1}, Sizes{1, 4, 5}, Sizes{2, 2, 3}, Sizes{3, 3, 7},
                                         Sizes{5, 5, 9}, Sizes{70, 4, 3}, Sizes{2, 7, 17}, Sizes{1, 9, 2}));

}  // namespace
}  // namespace braid::mhc
