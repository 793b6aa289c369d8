#include <braid/nn/mlp.h>

#include <algorithm>

#include <gtest/gtest.h>

#include <braid/autograd/ops/gelu.h>
#include <braid/autograd/ops/maximum.h>
#include <braid/autograd/ops/relu.h>
#include <braid/autograd/ops/silu.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::mlp_test {
namespace {

using testing::ElementsAre;

TEST(MLP, AppliesGeluBetweenTwoProducts) {
  Rng rng(1);
  const MLP mlp(3, 5, rng, {.dtype = DType::f64});
  const Tensor x = randn({2, 4, 3}, rng, DType::f64);
  expect_close(mlp(x).value(), mlp.down(gelu(mlp.up(x))).value());
}

TEST(MLP, HasOtherActivations) {
  Rng rng(2);
  const Tensor x = randn({2, 4, 3}, rng, DType::f64);
  const MLP exact(3, 5, rng, {.activation = Activation::gelu_erf, .dtype = DType::f64});
  expect_close(exact(x).value(), exact.down(gelu_erf(exact.up(x))).value());
  const MLP positive(3, 5, rng, {.activation = Activation::relu, .dtype = DType::f64});
  expect_close(positive(x).value(), positive.down(relu(positive.up(x))).value());
}

TEST(MLP, GatesWithSilu) {
  Rng rng(2);
  const MLP mlp(3, 5, rng, {.activation = Activation::swiglu, .dtype = DType::f64});
  const Tensor x = randn({2, 4, 3}, rng, DType::f64);
  expect_close(mlp(x).value(), mlp.down(silu((*mlp.gate)(x)) * mlp.up(x)).value());
}

TEST(MLP, LimitsTheGateFromAboveAndWhatItMultipliesOnBothSides) {
  Rng rng(4);
  const Tensor x = 3 * randn({5, 4, 3}, rng, DType::f64);
  for (const Activation activation : {Activation::swiglu, Activation::geglu}) {
    const MLP mlp(3, 5, rng, {.activation = activation, .limit = 0.5, .dtype = DType::f64});
    const Var gate = minimum((*mlp.gate)(x), 0.5), up = minimum(maximum(mlp.up(x), -0.5), 0.5);
    EXPECT_LT(std::ranges::min(gate.value().to_vector<double>()), -0.5);
    expect_close(mlp(x).value(), mlp.down((activation == Activation::geglu ? gelu(gate) : silu(gate)) * up).value());
  }
  expect_error<ValueError>([&] { MLP(3, 5, rng, {.limit = 1}); },
                           "MLP: limit must be positive and needs a gate but is 1");
  EXPECT_THROW(MLP(3, 5, rng, {.activation = Activation::swiglu, .limit = -1}), ValueError);
}

TEST(MLP, NamesItsParametersAndTrainsThem) {
  Rng rng(3);
  const Tensor x = randn({2, 3}, rng, DType::f64);
  const MLP plain(3, 5, rng, {.dtype = DType::f64});
  const MLP gated(3, 5, rng, {.activation = Activation::swiglu, .bias = false, .dtype = DType::f64});
  EXPECT_THAT(parameter_names(plain), ElementsAre("up.weight", "up.bias", "down.weight", "down.bias"));
  EXPECT_THAT(parameter_names(gated), ElementsAre("up.weight", "gate.weight", "down.weight"));
  for (const MLP& mlp : {plain, gated}) expect_gradients(mlp, [&](const MLP& m) { return m(x); });
}

TEST(MLP, RejectsEmptySizes) {
  Rng rng;
  expect_error<ValueError>([&] { MLP(4, 0, rng); }, "MLP: channels and hidden must be at least 1 but are 4 and 0");
}

}  // namespace
}  // namespace braid::nn::mlp_test
