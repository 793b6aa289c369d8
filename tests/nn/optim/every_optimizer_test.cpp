#include <gmock/gmock.h>

#include <braid/nn/optim/adafactor.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/lion.h>
#include <braid/nn/optim/muon.h>
#include <braid/nn/optim/sgd.h>
#include <braid/nn/transformer.h>
#include <tests/nn/module_checks.h>
#include <tests/support.h>

namespace braid::nn::every_optimizer_test {
namespace {

Transformer<> model() {
  Rng rng(1);
  return Transformer<>({.vocab = 11, .context = 4, .channels = 24, .layers = 1, .heads = 2}, rng);
}

Transformer<> gradients(std::uint64_t step) {
  Rng rng(100 + step);
  Transformer<> grads = model();
  for_each_param(grads, [&](const std::string&, Var& p) { p = randn(p.shape(), rng); });
  return grads;
}

/// SGD with momentum, so that it has a state.
struct Momentum : SGD {
  Momentum() : SGD({.lr = 0.1, .momentum = 0.9}) {}
};

template <class T>
struct EveryOptimizer : testing::Test {};
using Optimizers = testing::Types<SGD, Momentum, Adam, AdamW, Muon, Lion, Adafactor>;
TYPED_TEST_SUITE(EveryOptimizer, Optimizers);

TYPED_TEST(EveryOptimizer, ChangesEveryParameterAndMovesAgainstItsGradient) {
  Transformer<> changed = model();
  const Transformer<> grads = gradients(0);
  TypeParam optimizer;
  optimizer.step(changed, grads);
  const NamedTensors before = to_tensors(model()), along = to_tensors(grads);
  for (const auto& [name, value] : to_tensors(changed)) {
    const Var moved = Var(value) - before.at(name);
    EXPECT_LT(sum(moved * along.at(name)).item(), 0) << name;
  }
}

TYPED_TEST(EveryOptimizer, ContinuesFromItsStateBitForBit) {
  Transformer<> straight = model(), resumed = straight;
  TypeParam whole, first, second;
  for (std::uint64_t step = 0; step < 4; ++step) whole.step(straight, gradients(step), 0.5);
  for (std::uint64_t step = 0; step < 2; ++step) first.step(resumed, gradients(step), 0.5);
  second.load_state(resumed, first.state());
  for (std::uint64_t step = 2; step < 4; ++step) second.step(resumed, gradients(step), 0.5);
  const NamedTensors expected = to_tensors(straight);
  for (const auto& [name, value] : to_tensors(resumed)) EXPECT_TRUE(identical(value, expected.at(name))) << name;
  const NamedTensors state = whole.state();
  for (const auto& [name, value] : second.state()) EXPECT_TRUE(identical(value, state.at(name))) << name;
}

TYPED_TEST(EveryOptimizer, HasTheSameBitsForAnyNumberOfThreads) {
  std::vector<NamedTensors> results;
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads);
    Transformer<> trained = model();
    TypeParam optimizer;
    for (std::uint64_t step = 0; step < 2; ++step) optimizer.step(trained, gradients(step));
    results.push_back(to_tensors(trained));
  }
  for (const auto& [name, value] : results[0])
    for (const std::size_t other : {1U, 2U}) EXPECT_TRUE(identical(value, results[other].at(name))) << name;
}

TYPED_TEST(EveryOptimizer, TakesModelsInDoublePrecision) {
  Transformer<> wide = model(), grads = gradients(0);
  for (Transformer<>* m : {&wide, &grads})
    for_each_param(*m, [](const std::string&, Var& p) { p = p.value().to(DType::f64); });
  Transformer<> narrow = model();
  TypeParam of_wide, of_narrow;
  of_wide.step(wide, grads);
  of_narrow.step(narrow, gradients(0));
  const NamedTensors expected = to_tensors(narrow);
  for (const auto& [name, value] : to_tensors(wide)) {
    SCOPED_TRACE(name);
    EXPECT_EQ(value.dtype(), DType::f64);
    expect_close(value, expected.at(name).to(DType::f64), 2e-5);
  }
}

TYPED_TEST(EveryOptimizer, RefusesAModelThatIsNotItsFirst) {
  Transformer<> first = model();
  TypeParam optimizer;
  optimizer.step(first, gradients(0));
  Var other = ones({3, 3});
  EXPECT_THROW(optimizer.step(other, other), Error);
  EXPECT_EQ(optimizer.steps(), 1);
}

TEST(OptimizerSettings, AreThoseOfPyTorchAndOfThePapers) {
  const AdamSettings s;
  EXPECT_EQ((std::vector{s.lr, s.beta1, s.beta2, s.eps}), (std::vector{1e-3, 0.9, 0.999, 1e-8}));
  EXPECT_EQ((std::vector{SGDSettings().lr, AdafactorSettings().lr, LionSettings().lr}),
            (std::vector{1e-2, 1e-2, 1e-4}));
}

}  // namespace
}  // namespace braid::nn::every_optimizer_test
