#include <braid/nn/optim/adam.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <braid/nn/linear.h>

#include <tests/support.h>
#include "tests/nn/module_checks.h"

namespace braid::nn::adam_test {
namespace {

using testing::ElementsAre;

/// One element of Adam(W), written as in the papers.
struct ScalarAdam {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;
  double m = 0, v = 0;
  int t = 0;

  double operator()(double p, double g) {
    if (!decoupled) g += weight_decay * p;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    ++t;
    const double m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
    return p - (decoupled ? lr * weight_decay * p : 0) - lr * m_hat / (std::sqrt(v_hat) + eps);
  }
};

template <class Optimizer>
void expect_textbook_steps(DType dtype, double tolerance) {
  constexpr std::int64_t kSize = 21;  // whole vectors and a rest
  Rng rng(1);
  Var p = randn({kSize}, rng, dtype);
  std::vector<double> expected = p.value().to_vector<double>();
  std::vector<ScalarAdam> scalars(kSize, {0.01, 0.8, 0.95, 1e-6, 0.3, std::is_same_v<Optimizer, AdamW>});
  Optimizer optimizer(
      {.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.3, .decays = decay_everything});
  for (int step = 0; step < 5; ++step) {
    const Var grad = randn({kSize}, rng, dtype);
    const auto g = grad.value().to_vector<double>();
    for (std::size_t i = 0; i < g.size(); ++i) expected[i] = scalars[i](expected[i], g[i]);
    optimizer.step(p, grad);
    EXPECT_THAT(p.value().template to_vector<double>(), testing::Pointwise(testing::DoubleNear(tolerance), expected));
  }
}

TEST(Adam, TakesTheTextbooksSteps) {
  expect_textbook_steps<Adam>(DType::f64, 1e-14);
  expect_textbook_steps<Adam>(DType::f32, 1e-6);
}

TEST(AdamW, TakesTheTextbooksSteps) {
  expect_textbook_steps<AdamW>(DType::f64, 1e-14);
  expect_textbook_steps<AdamW>(DType::f32, 1e-6);
}

TEST(AdamW, UpdatesInPlaceUnlessTheStorageIsShared) {
  Var p = ones({3});
  const Var grad = ones({3});
  AdamW optimizer;
  const std::byte* const storage = p.value().bytes();
  optimizer.step(p, grad);
  EXPECT_EQ(p.value().bytes(), storage);
  const Var snapshot = p;
  const double before = snapshot.value().at({0});
  optimizer.step(p, grad);
  EXPECT_EQ(snapshot.value().at({0}), before);
  EXPECT_LT(p.value().at({0}), before);
}

TEST(AdamW, AcceptsGradientsThatAreViews) {
  Var p = zeros({2, 3}, DType::f64), q = zeros({2, 3}, DType::f64);
  const Tensor grad = Tensor::of<double>({3, 2}, {1, -2, 3, -4, 5, -6}).transpose();
  AdamW().step(p, Var(grad));
  AdamW().step(q, Var(grad.clone()));
  EXPECT_TRUE(identical(p.value(), q.value()));
}

TEST(AdamW, ContinuesFromItsStateBitForBit) {
  Rng rng(3);
  const Linear start(5, 3, rng);
  std::vector<Linear> grads(6, start);
  for (auto& g : grads) for_each_param(g, [&](const std::string&, Var& p) { p = randn(p.shape(), rng); });

  Linear straight = start;
  AdamW first({.lr = 0.1});
  for (const Linear& g : grads) first.step(straight, g);

  Linear resumed = start;
  AdamW before({.lr = 0.1}), after({.lr = 0.1});
  for (std::size_t i = 0; i < 3; ++i) before.step(resumed, grads[i]);
  const NamedTensors state = before.state();
  const Linear saved = resumed;
  before.step(resumed, grads[0]);  // must write neither into the state that was read nor into the saved parameters
  resumed = saved;
  after.load_state(resumed, state);
  EXPECT_EQ(after.steps(), 3);
  for (std::size_t i = 3; i < 6; ++i) after.step(resumed, grads[i]);
  EXPECT_TRUE(identical(resumed.weight.value(), straight.weight.value()));
  EXPECT_TRUE(identical(resumed.bias.value(), straight.bias.value()));
}

TEST(AdamW, NamesItsState) {
  Rng rng(4);
  Linear layer(2, 2, rng);
  AdamW optimizer;
  EXPECT_EQ(optimizer.state().size(), 1u);
  optimizer.step(layer, Linear(layer));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer.state()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("first_moment.bias", "first_moment.weight", "second_moment.bias",
                                 "second_moment.weight", "step"));
}

TEST(AdamW, RestoresTheStateBeforeItsFirstStep) {
  Rng rng(5);
  Linear layer(2, 2, rng);
  AdamW optimizer;
  const NamedTensors fresh = optimizer.state();
  optimizer.step(layer, Linear(layer));
  optimizer.load_state(layer, fresh);
  EXPECT_EQ(optimizer.steps(), 0);
  optimizer.step(layer, Linear(layer));
  EXPECT_EQ(optimizer.steps(), 1);
}

TEST(AdamW, ListsAllThatDoesNotFitInAState) {
  Rng rng(6);
  Linear layer(2, 3, rng);
  AdamW optimizer;
  const NamedTensors state{{"first_moment.weight", ones({3, 2})},
                           {"second_moment.weight", ones({2, 3})},
                           {"first_moment.bias", ones({3})},
                           {"momentum.bias", ones({3})}};
  expect_error<Error>([&] { optimizer.load_state(layer, state); },
                      "AdamW::load_state: step is missing, second_moment.weight must have shape [3, 2] but has [2, 3], "
                      "second_moment.bias is missing, momentum.bias is unexpected");
  EXPECT_EQ(optimizer.state().size(), 1u);
}

TEST(AdamW, RefusesAStateOfAStepAloneUnlessItIsZero) {
  Rng rng(6);
  Linear layer(2, 2, rng, {.bias = false});
  AdamW optimizer;
  optimizer.step(layer, Linear(layer));
  const auto refusal = [&](const NamedTensors& state) {
    return message_of([&] { optimizer.load_state(layer, state); });
  };
  const std::string start = "AdamW::load_state: ";
  const std::string missing = "first_moment.weight is missing, second_moment.weight is missing";
  EXPECT_EQ(refusal({{"step", full({}, 3, DType::i32)}}), start + missing);
  EXPECT_EQ(refusal({{"step", zeros({2}, DType::i32)}}), start + "step must have shape [] but has [2], " + missing);
  EXPECT_EQ(refusal({{"step", zeros({1}, DType::i32)}}), start + "step must have shape [] but has [1]");
  EXPECT_EQ(refusal({{"steps", zeros({}, DType::i32)}}),
            start + "step is missing, " + missing + ", steps is unexpected");
  EXPECT_EQ(optimizer.steps(), 1);
  EXPECT_EQ(optimizer.state().size(), 3u);
}

TEST(AdamW, GivesTheSameBitsForAnyNumberOfThreads) {
  Rng rng(7);
  const Tensor values = randn({50021}, rng), grad = randn({50021}, rng);
  std::vector<Tensor> results;
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads);
    Var p = values;
    AdamW optimizer;
    for (int step = 0; step < 3; ++step) optimizer.step(p, Var(grad));
    results.push_back(p.value());
  }
  EXPECT_TRUE(identical(results[0], results[1]));
  EXPECT_TRUE(identical(results[0], results[2]));
}

TEST(AdamW, FollowsTheLearningRateThatIsSet) {
  Var p = zeros({1}, DType::f64);
  AdamW optimizer({.lr = 1, .eps = 0});
  optimizer.set_lr(0.25);
  EXPECT_EQ(optimizer.lr(), 0.25);
  optimizer.step(p, Var(ones({1}, DType::f64)));
  EXPECT_DOUBLE_EQ(p.item(), -0.25);
}

TEST(Adam, RejectsBadSettings) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error<ValueError>([&] { AdamW({.lr = nan}); }, "AdamW: lr must be finite and at least 0 but is nan");
  expect_error<ValueError>([&] { Adam({.lr = -1}); }, "Adam: lr must be finite and at least 0 but is -1");
  expect_error<ValueError>([&] { AdamW().set_lr(nan); }, "AdamW: lr must be finite and at least 0 but is nan");
  expect_error<ValueError>([&] { AdamW({.beta2 = 1}); }, "AdamW: beta2 must be in [0, 1) but is 1");
  expect_error<ValueError>([&] { AdamW({.weight_decay = -0.1}); },
                           "AdamW: weight_decay must be finite and at least 0 but is -0.1");
}

TEST(AdamW, RejectsGradientsThatDoNotMatch) {
  Rng rng(8);
  Linear layer(2, 2, rng);
  AdamW optimizer;
  Linear grads(2, 2, rng, {.bias = false});
  expect_error<ShapeError>([&] { optimizer.step(layer, grads); },
                           "AdamW: grads must have the model's 2 parameters but have 1");
  grads = Linear(2, 3, rng);
  expect_error<ShapeError>([&] { optimizer.step(layer, grads); },
                           "AdamW: the gradient of weight must have shape [2, 2] but has [3, 2]");
  grads = Linear(2, 2, rng, {.dtype = DType::f64});
  expect_error<DTypeError>([&] { optimizer.step(layer, grads); },
                           "AdamW: the gradient of weight must be f32 but is f64");
}

TEST(AdamW, RejectsAnotherModelThanItsFirst) {
  Rng rng(9);
  Linear small(2, 2, rng), large(3, 2, rng), bare(2, 2, rng, {.bias = false});
  AdamW optimizer;
  optimizer.step(small, Linear(small));
  expect_error<Error>([&] { optimizer.step(large, Linear(large)); },
                      "AdamW: has the state of weight f32 [2, 2] but the model has weight f32 [2, 3]");
  expect_error<Error>([&] { optimizer.step(bare, Linear(bare)); },
                      "AdamW: has the state of 2 parameters but the model has 1");
}

}  // namespace
}  // namespace braid::nn::adam_test
