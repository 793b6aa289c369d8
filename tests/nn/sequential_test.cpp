#include <braid/nn/sequential.h>

#include <gtest/gtest.h>

#include <braid/autograd/ops/tanh.h>
#include <braid/nn/linear.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::sequential_test {
namespace {

TEST(Sequential, RunsItsLayersInOrder) {
  Rng rng(1);
  const Linear first(3, 4, rng, {.dtype = DType::f64}), second(4, 2, rng, {.dtype = DType::f64});
  const Sequential model(
      first, [](const Var& x) { return tanh(x); }, second);
  const Tensor x = randn({5, 3}, rng, DType::f64);
  expect_close(model(x).value(), second(tanh(first(x))).value());
}

TEST(Sequential, NamesParametersByPositionAndTrainsThem) {
  Rng rng(2);
  const Sequential model(
      Linear(3, 4, rng, {.dtype = DType::f64}), [](const Var& x) { return tanh(x); },
      Linear(4, 2, rng, {.dtype = DType::f64}));
  EXPECT_THAT(parameter_names(model), testing::ElementsAre("0.weight", "0.bias", "2.weight", "2.bias"));
  const Tensor x = randn({5, 3}, rng, DType::f64);
  expect_gradients(model, [&](const auto& m) { return m(x); });
}

TEST(Sequential, NestsAndMayBeEmpty) {
  Rng rng(3);
  const Sequential model(Sequential(Linear(2, 2, rng)), Sequential<>());
  EXPECT_THAT(parameter_names(model), testing::ElementsAre("0.0.weight", "0.0.bias"));
  const Tensor x = ones({2});
  EXPECT_TRUE(identical(Sequential<>()(x).value(), x));
}

}  // namespace
}  // namespace braid::nn::sequential_test
