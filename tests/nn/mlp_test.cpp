#include <braid/nn/mlp.h>

#include <gtest/gtest.h>

#include <braid/autograd/ops/gelu.h>
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
