#include <braid/nn/optim/adafactor.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <tests/nn/module_checks.h>
#include <tests/support.h>

namespace braid::nn::adafactor_test {
namespace {

double rms(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

/// A matrix [m, n], or a vector with m = 0, element by element as PyTorch's optimizer has them.
struct Reference {
  AdafactorSettings s;
  std::size_t m, n;
  std::vector<double> rows = std::vector<double>(m), columns = std::vector<double>(n), variance = columns;

  std::vector<double> step(std::vector<double> p, const std::vector<double>& g, double t) {
    const double fresh = std::pow(t, s.beta2_decay), eps1 = s.eps1.value_or(std::numeric_limits<double>::epsilon());
    const double alpha = std::max(s.eps2, rms(p)) * std::min(s.lr, 1 / std::sqrt(t));
    std::vector<double> update(g.size());
    if (m == 0) {
      for (std::size_t j = 0; j < n; ++j) variance[j] += fresh * (g[j] * g[j] - variance[j]);
      for (std::size_t j = 0; j < n; ++j) update[j] = g[j] / std::sqrt(std::max(variance[j], eps1 * eps1));
    } else {
      const auto square = [&](std::size_t i, std::size_t j) { return g[i * n + j] * g[i * n + j]; };
      for (std::size_t i = 0; i < m; ++i) {
        double mean = 0;
        for (std::size_t j = 0; j < n; ++j) mean += square(i, j) / static_cast<double>(n);
        rows[i] += fresh * (mean - rows[i]);
      }
      for (std::size_t j = 0; j < n; ++j) {
        double mean = 0;
        for (std::size_t i = 0; i < m; ++i) mean += square(i, j) / static_cast<double>(m);
        columns[j] += fresh * (mean - columns[j]);
      }
      double mean = 0;
      for (const double row : rows) mean += row / static_cast<double>(m);
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j)
          update[i * n + j] =
              g[i * n + j] / std::sqrt(std::max(rows[i] * columns[j] / std::max(mean, eps1), eps1 * eps1));
    }
    const double clipping = std::max(1.0, rms(update) / s.clip);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = (1 - s.lr * s.weight_decay) * p[i] - alpha / clipping * update[i];
    return p;
  }
};

TEST(Adafactor, TakesPyTorchsSteps) {
  const std::vector<AdafactorSettings> all{{.decays = decay_everything},
                                           {.lr = 0.9,
                                            .beta2_decay = -0.5,
                                            .eps1 = 1e-3,
                                            .eps2 = 0.2,
                                            .clip = 0.4,
                                            .weight_decay = 0.1,
                                            .decays = decay_everything},
                                           {.lr = 0.3, .eps1 = 2.0, .clip = 5, .decays = decay_everything}};
  for (const AdafactorSettings& settings : all)
    for (const Shape& shape : {Shape{4, 3}, Shape{7}, Shape{1, 5}}) {
      SCOPED_TRACE(fmt::format("{}", shape));
      Rng rng(1);
      const auto n = static_cast<std::size_t>(shape[-1]);
      Reference reference{settings, shape.rank() == 1 ? 0 : static_cast<std::size_t>(shape[0]), n};
      Var p = randn(shape, rng, DType::f64);
      std::vector<double> expected = p.value().to_vector<double>();
      Adafactor optimizer(settings);
      for (int t = 1; t <= 4; ++t) {
        const Tensor grad = randn(shape, rng, DType::f64);
        expected = reference.step(expected, grad.to_vector<double>(), t);
        optimizer.step(p, 4.0 * grad, 0.25);
        EXPECT_THAT(p.value().to_vector<double>(), testing::Pointwise(testing::DoubleNear(1e-13), expected));
      }
    }
}

TEST(Adafactor, EndsWherePyTorchsDoes) {  // torch.optim.Adafactor 2.15 in f64
  Var p = wave({3, 5}, 1);
  Adafactor optimizer({.lr = 0.3, .weight_decay = 0.1});
  for (int t = 0; t < 3; ++t) optimizer.step(p, Var(wave({3, 5}, 0.3 + t)));
  expect_close(p.value().select(0, 0), Tensor::of<double>({5}, {0, 0.182162414782085, 0.816208028388249,
                                                                -0.0993384669318356, -0.770828891786279}));
}

TEST(Adafactor, TreatsLeadingAxesAsABatchOfMatrices) {
  Rng rng(2);
  const Tensor start = randn({2, 3, 4}, rng, DType::f64), grad = randn({2, 3, 4}, rng, DType::f64);
  Var p = start;
  Adafactor optimizer;
  optimizer.step(p, Var(grad));
  EXPECT_EQ(optimizer.state().at("row_variance.").shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(optimizer.state().at("column_variance.").shape(), (Shape{2, 1, 4}));
}

TEST(Adafactor, TakesParametersOfAnyShapeAndZeroGradients) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{1, 1}}) {
    Var p = full(shape, 2);
    Adafactor optimizer;
    optimizer.step(p, Var(zeros(shape)));
    for (const double value : p.value().to_vector<double>()) EXPECT_EQ(value, 2);
    for (const auto& [name, state] : optimizer.state())
      for (const double value : state.to_vector<double>()) EXPECT_EQ(value, name == "step" ? 1 : 0) << name;
  }
}

TEST(Adafactor, RefusesBadSettings) {
  expect_error<ValueError>([] { Adafactor({.lr = -1}); }, "Adafactor: lr must be finite and at least 0 but is -1");
  expect_error<ValueError>([] { Adafactor({.eps1 = -1}); }, "Adafactor: eps1 must be finite and at least 0 but is -1");
  expect_error<ValueError>([] { Adafactor({.eps2 = -1}); }, "Adafactor: eps2 must be finite and at least 0 but is -1");
  expect_error<ValueError>([] { Adafactor({.weight_decay = -1}); },
                           "Adafactor: weight_decay must be finite and at least 0 but is -1");
  expect_error<ValueError>([] { Adafactor({.clip = 0}); }, "Adafactor: clip must be finite and positive but is 0");
  expect_error<ValueError>([] { Adafactor({.beta2_decay = 0.5}); },
                           "Adafactor: beta2_decay must be finite and at most 0 but is 0.5");
  expect_error<ValueError>([] { Adafactor({.clip = INFINITY}); },
                           "Adafactor: clip must be finite and positive but is inf");
  expect_error<ValueError>([] { Adafactor({.beta2_decay = -INFINITY}); },
                           "Adafactor: beta2_decay must be finite and at most 0 but is -inf");
  EXPECT_NO_THROW(Adafactor({.lr = 0, .beta2_decay = 0, .eps1 = 0, .eps2 = 0}));
}

}  // namespace
}  // namespace braid::nn::adafactor_test
