#include <braid/nn/optim/sgd.h>

#include <cmath>

#include <gtest/gtest.h>

#include <braid/nn/linear.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::sgd_test {
namespace {

/// Steps of one element with gradients 1, -2, 3, 0.5 from p = 2, computed term by term.
std::vector<double> steps(const SGDSettings& s) {
  std::vector<double> path;
  double p = 2, velocity = 0;
  for (const double grad : {1.0, -2.0, 3.0, 0.5}) {
    const double g = grad + s.weight_decay * p;
    velocity = s.momentum * velocity + g;
    p -= s.lr * (s.nesterov ? g + s.momentum * velocity : velocity);
    path.push_back(p);
  }
  return path;
}

TEST(SGD, TakesTheTextbooksSteps) {
  for (const bool nesterov : {false, true})
    for (const double momentum : {0.0, 0.9}) {
      if (nesterov && momentum == 0) continue;
      const SGDSettings settings{
          .lr = 0.1, .momentum = momentum, .nesterov = nesterov, .weight_decay = 0.2, .decays = decay_everything};
      const auto expected = steps(settings);
      for (const DType dtype : {DType::f32, DType::f64}) {
        Var p = full({3}, 2, dtype);
        SGD optimizer(settings);
        const std::vector<double> gradients{1.0, -2.0, 3.0, 0.5};
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          optimizer.step(p, Var(full({3}, gradients[i], dtype)));
          EXPECT_NEAR(p.value().at({2}), expected[i], dtype == DType::f32 ? 1e-6 : 1e-14);
        }
      }
    }
}

TEST(SGD, ContinuesFromItsState) {
  Var straight = ones({2}), resumed = ones({2});
  const Var grad = ones({2});
  SGD first({.momentum = 0.9}), second({.momentum = 0.9}), third({.momentum = 0.9});
  for (int i = 0; i < 4; ++i) first.step(straight, grad);
  for (int i = 0; i < 2; ++i) second.step(resumed, grad);
  third.load_state(resumed, second.state());
  for (int i = 0; i < 2; ++i) third.step(resumed, grad);
  EXPECT_TRUE(identical(straight.value(), resumed.value()));
  EXPECT_EQ(third.steps(), 4);
}

TEST(SGD, KeepsOnlyItsStepCountWithoutMomentum) {
  Var p = ones({2});
  SGD optimizer;
  optimizer.step(p, Var(ones({2})));
  const NamedTensors state = optimizer.state();
  EXPECT_EQ(state.size(), 1u);
  EXPECT_EQ(state.at("step").item(), 1);
  SGD other;
  other.load_state(p, state);
  EXPECT_EQ(other.steps(), 1);
}

TEST(SGD, RejectsBadSettings) {
  expect_error<ValueError>([] { SGD({.lr = std::nan("")}); }, "SGD: lr must be finite and at least 0 but is nan");
  expect_error<ValueError>([] { SGD({.momentum = 1}); }, "SGD: momentum must be in [0, 1) but is 1");
  expect_error<ValueError>([] { SGD({.nesterov = true}); }, "SGD: nesterov needs a momentum");
}

}  // namespace
}  // namespace braid::nn::sgd_test
