#include <braid/nn/optim/lion.h>

#include <limits>

#include <gmock/gmock.h>

#include <tests/nn/module_checks.h>

namespace braid::nn::lion_test {
namespace {

/// Steps of one element, as the paper has them.
std::vector<double> steps(const LionSettings& s, const std::vector<double>& grads) {
  std::vector<double> path;
  double p = 2, m = 0;
  for (const double g : grads) {
    const double c = s.beta1 * m + (1 - s.beta1) * g;
    p -= s.lr * ((c > 0 ? 1 : c < 0 ? -1 : 0) + s.weight_decay * p);
    m = s.beta2 * m + (1 - s.beta2) * g;
    path.push_back(p);
  }
  return path;
}

TEST(Lion, TakesThePapersSteps) {
  const std::vector<double> grads{1.0, -0.05, 0.0, -3.0, 1.0, -20.0};  // the sign of the average is not always theirs
  const LionSettings settings{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.2, .decays = decay_everything};
  const auto expected = steps(settings, grads);
  for (const DType dtype : {DType::f32, DType::f64}) {
    Var p = full({3}, 2, dtype);
    Lion optimizer(settings);
    for (std::size_t i = 0; i < grads.size(); ++i) {
      optimizer.step(p, Var(full({3}, 2 * grads[i], dtype)), 0.5);
      EXPECT_NEAR(p.value().at({2}), expected[i], dtype == DType::f32 ? 1e-6 : 1e-14);
    }
  }
}

TEST(Lion, StandsStillWithoutAGradient) {
  Var p = full({2, 1}, 3);
  Lion().step(p, Var(zeros({2, 1})));
  EXPECT_THAT(p.value().to_vector<float>(), testing::Each(3.0F));
}

TEST(Lion, KeepsOneMoment) {
  Var p = ones({2, 2});
  Lion optimizer;
  optimizer.step(p, p);
  EXPECT_EQ(optimizer.state().size(), 2u);
  EXPECT_TRUE(optimizer.state().contains("first_moment."));
}

TEST(Lion, HasTheDefaultsOfThePaper) {
  Var p = scalar(2);
  Lion optimizer({.lr = 0.1});
  optimizer.step(p, Var(scalar(1)));
  EXPECT_NEAR(optimizer.state().at("first_moment.").item(), 0.01, 1e-8);  // 1 - beta2
  optimizer.step(p, Var(scalar(-0.1)));                                   // 0.9 * 0.01 - 0.1 * 0.1 < 0
  EXPECT_NEAR(p.item(), 2, 1e-6);
}

TEST(Lion, RefusesBadSettings) {
  expect_error<ValueError>([] { Lion({.lr = -1}); }, "Lion: lr must be finite and at least 0 but is -1");
  expect_error<ValueError>([] { Lion({.beta1 = 1}); }, "Lion: beta1 must be in [0, 1) but is 1");
  expect_error<ValueError>([] { Lion({.beta2 = -.5}); }, "Lion: beta2 must be in [0, 1) but is -0.5");
  expect_error<ValueError>([] { Lion({.weight_decay = std::numeric_limits<double>::infinity()}); },
                           "Lion: weight_decay must be finite and at least 0 but is inf");
}

}  // namespace
}  // namespace braid::nn::lion_test
