#include <braid/nn/optim/muon.h>

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/transpose.h>
#include <tests/nn/module_checks.h>

namespace braid::nn::muon_test {
namespace {

/// U diag(values) V^T for rotations U by .3 and V by 1.1, with zero columns up to `width`.
Tensor with_singular_values(double first, double second, std::int64_t width) {
  const double u = 0.3, v = 1.1;
  Tensor x = zeros({2, width}, DType::f64);
  double* at = x.mutable_data<double>();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      at[i * width + j] = first * (i == 0 ? std::cos(u) : std::sin(u)) * (j == 0 ? std::cos(v) : std::sin(v)) +
                          second * (i == 0 ? -std::sin(u) : std::cos(u)) * (j == 0 ? -std::sin(v) : std::cos(v));
  return x;
}

/// What the iteration does to a singular value of a matrix whose norm is 1.
double iterated(double s, int iterations) {
  for (int i = 0; i < iterations; ++i) s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
  return s;
}

TEST(Orthogonalized, ActsOnSingularValuesAlone) {
  for (const int iterations : {1, 5})
    for (const double scale : {1e-3, 1.0, 1e4})
      for (const std::int64_t width : {2, 5}) {
        const double norm = std::hypot(3.0, 0.5) + 1e-7 / scale;
        const Tensor x = with_singular_values(3 * scale, 0.5 * scale, width);
        const Tensor expected =
            with_singular_values(iterated(3 / norm, iterations), iterated(0.5 / norm, iterations), width);
        expect_close(orthogonalized(x, iterations), expected, 1e-11);
        expect_close(orthogonalized(x.transpose().clone(), iterations), expected.transpose(), 1e-11);
      }
}

TEST(Orthogonalized, BringsSingularValuesOfAnySizeNearOne) {
  Rng rng(1);
  for (const Shape& shape : {Shape{40, 40}, Shape{17, 64}, Shape{64, 3}, Shape{1, 9}, Shape{1, 1}}) {
    SCOPED_TRACE(fmt::format("{}", shape));
    const Var q = orthogonalized(randn(shape, rng));
    const bool tall = shape[0] > shape[1];
    const Var gram = tall ? matmul(transpose(q), q) : matmul(q, transpose(q));
    const double mean_square = sum(q * q).item() / static_cast<double>(std::min(shape[0], shape[1]));
    EXPECT_GT(mean_square, 0.68 * 0.68);
    EXPECT_LT(mean_square, 1.14 * 1.14);
    for (const double square : gram.value().to_vector<double>()) EXPECT_LT(std::abs(square), 1.3);
  }
}

TEST(Orthogonalized, HasTheSameBitsForTheTranspose) {
  const Tensor x = Tensor::of<double>({2, 3}, {1, 2, -3, 4, 0, 5});  // whose squares have an exact sum
  EXPECT_TRUE(identical(orthogonalized(x.transpose()), orthogonalized(x).transpose()));
}

TEST(Orthogonalized, KeepsZerosAndTakesMatricesOnly) {
  for (const Shape& shape : {Shape{3, 4}, Shape{0, 4}, Shape{4, 0}}) {
    const Tensor q = orthogonalized(zeros(shape));
    EXPECT_EQ(q.shape(), shape);
    for (const double value : q.to_vector<double>()) EXPECT_EQ(value, 0);
  }
  expect_error<ShapeError>(
      [] {
        orthogonalized(ones({2, 3, 4}));
      },
      "orthogonalized: x must be a matrix but has shape [2, 3, 4]");
}

/// A matrix, a filter of three axes, and two parameters for AdamW.
struct Model {
  Var hidden = ones({3, 5}, DType::f64), filter = ones({4, 2, 3}, DType::f64);
  Var embedding = ones({6, 2}, DType::f64), bias = ones({5}, DType::f64);

  void params(auto&& visit) {
    visit("hidden", hidden);
    visit("filter", filter);
    visit("embedding", embedding);
    visit("bias", bias);
  }
};

Model random_model(std::uint64_t seed) {
  Rng rng(seed);
  Model model;
  for_each_param(model, [&](const std::string&, Var& p) { p = randn(p.shape(), rng, DType::f64); });
  return model;
}

TEST(Muon, StepsAlongOrthogonalizedVelocitiesAndAsAdamWElsewhere) {
  for (const bool nesterov : {false, true}) {
    const AdamWSettings adamw{.lr = 0.02, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.3};
    Muon muon({.adamw = adamw, .momentum = 0.7, .nesterov = nesterov, .iterations = 4, .update_rms = 0.25});
    AdamW reference(adamw);
    Model model = random_model(1), others = model;
    std::vector<Var> expected{model.hidden, model.filter}, velocities{0.0 * model.hidden, 0.0 * model.filter};
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Model grads = random_model(10 + step);
      muon.step(model, grads, 0.5);
      reference.step(others, grads, 0.5);
      const Var gradients[]{grads.hidden, grads.filter};
      for (std::size_t i = 0; i < 2; ++i) {
        const Var g = 0.5 * gradients[i];
        velocities[i] = 0.7 * velocities[i] + g;
        const Var ahead = nesterov ? g + 0.7 * velocities[i] : velocities[i];
        const Var direction = orthogonalized(ahead.value().reshape({ahead.size(0), -1}), 4).reshape(ahead.shape());
        const double longest = i == 0 ? 5 : 6;
        expected[i] = (1 - 0.02 * 0.3) * expected[i] - 0.02 * 0.25 * std::sqrt(longest) * direction;
      }
      expect_close(model.hidden.value(), expected[0].value(), 1e-13);
      expect_close(model.filter.value(), expected[1].value(), 1e-13);
      EXPECT_TRUE(identical(model.embedding.value(), others.embedding.value()));
      EXPECT_TRUE(identical(model.bias.value(), others.bias.value()));
    }
  }
}

TEST(Muon, HasTheDefaultsOfItsAuthors) {
  Muon usual, spelled({.momentum = 0.95, .nesterov = true, .iterations = 5, .update_rms = 0.18});
  Model model = random_model(1), other = model;
  for (std::uint64_t step = 0; step < 2; ++step) {
    usual.step(model, random_model(10 + step));
    spelled.step(other, random_model(10 + step));
  }
  EXPECT_TRUE(identical(model.hidden.value(), other.hidden.value()));
}

TEST(Muon, TakesMatricesWithoutElements) {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{2, 0, 4}}) {
    Var p = zeros(shape);
    Muon().step(p, p);
    EXPECT_EQ(p.shape(), shape);
  }
}

TEST(Muon, UpdatesHaveTheSetRootMeanSquare) {
  Rng rng(4);
  Var p = zeros({48, 96});
  Muon({.adamw = {.lr = 1}}).step(p, Var(randn(p.shape(), rng)));
  const double rms = std::sqrt(sum(p * p).item() / static_cast<double>(p.numel()));
  EXPECT_NEAR(rms, 0.18, 0.04);
}

TEST(Muon, KeepsVelocitiesOfMatricesAndMomentsOfTheRest) {
  Model model = random_model(2);
  Muon muon;
  muon.step(model, random_model(3));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : muon.state()) names.push_back(name);
  EXPECT_THAT(names, testing::ElementsAre("first_moment.bias", "first_moment.embedding", "second_moment.bias",
                                          "second_moment.embedding", "step", "velocity.filter", "velocity.hidden"));
}

TEST(Muon, RefusesBadSettings) {
  expect_error<ValueError>([] { Muon({.adamw = {.lr = -1}}); }, "Muon: lr must be finite and at least 0 but is -1");
  expect_error<ValueError>([] { Muon({.adamw = {.beta1 = 1}}); }, "Muon: beta1 must be in [0, 1) but is 1");
  expect_error<ValueError>([] { Muon({.momentum = 1}); }, "Muon: momentum must be in [0, 1) but is 1");
  expect_error<ValueError>([] { Muon({.iterations = 0}); }, "Muon: iterations must be at least 1 but is 0");
  expect_error<ValueError>([] { Muon({.update_rms = -1}); },
                           "Muon: update_rms must be finite and at least 0 but is -1");
  Var p = ones({3});
  Muon all({.matrices = decay_everything});
  expect_error<ValueError>([&] { all.step(p, p); },
                           "Muon:  must have at least two axes to be a matrix but has shape [3]");
  EXPECT_NO_THROW(Muon({.adamw = {.lr = 0}, .momentum = 0, .iterations = 1, .update_rms = 0}));
}

}  // namespace
}  // namespace braid::nn::muon_test
