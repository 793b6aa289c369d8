#include <braid/nn/linear.h>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/transpose.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::linear_test {
namespace {

using testing::ElementsAre;

TEST(Linear, IsAProductAndABias) {
  Rng rng(1);
  const Linear layer(3, 2, rng, {.dtype = DType::f64});
  const Tensor x = randn({4, 5, 3}, rng, DType::f64);
  expect_close(layer(x).value(), (matmul(x, transpose(layer.weight)) + layer.bias).value());
}

TEST(Linear, NamesItsParametersAndTrainsThem) {
  Rng rng(2);
  const Tensor x = randn({4, 3}, rng, DType::f64);
  const Linear with_bias(3, 2, rng, {.dtype = DType::f64}), without(3, 2, rng, {.bias = false, .dtype = DType::f64});
  EXPECT_THAT(parameter_names(with_bias), ElementsAre("weight", "bias"));
  EXPECT_THAT(parameter_names(without), ElementsAre("weight"));
  for (const Linear& layer : {with_bias, without}) expect_gradients(layer, [&](const Linear& m) { return m(x); });
}

TEST(Linear, StartsWithinOneOverTheRootOfItsInputs) {
  Rng rng(3);
  for (const Var& weight : {Linear(100, 50, rng).weight, GroupedLinear(2, 100, 25, rng).weight}) {
    EXPECT_EQ(weight.dtype(), DType::f32);
    const auto values = weight.value().to_vector<double>();
    const auto [low, high] = std::ranges::minmax(values);
    EXPECT_GE(low, -0.1);
    EXPECT_LE(high, 0.1);
    EXPECT_LT(low, -0.099);
    EXPECT_GT(high, 0.099);
  }
}

TEST(Linear, RejectsEmptySizes) {
  Rng rng;
  expect_error<ValueError>([&] { Linear(0, 3, rng); }, "Linear: in and out must be at least 1 but are 0 and 3");
}

TEST(GroupedLinear, MapsEachPartByItsOwnWeights) {
  Rng rng(4);
  const GroupedLinear layer(3, 2, 4, rng, DType::f64);
  const Tensor x = randn({2, 5, 6}, rng, DType::f64);
  const Tensor y = layer(x).value();
  ASSERT_EQ(y.shape(), Shape({2, 5, 12}));
  for (std::int64_t g = 0; g < 3; ++g)
    expect_close(y.slice(-1, 4 * g, 4 * g + 4),
                 linear(x.slice(-1, 2 * g, 2 * g + 2), layer.weight.value().slice(0, 4 * g, 4 * g + 4)).value());
  EXPECT_THAT(parameter_names(layer), ElementsAre("weight"));
  expect_gradients(layer, [&](const GroupedLinear& m) { return m(x); });
  expect_error<ValueError>([&] { GroupedLinear(2, 3, 0, rng); },
                           "GroupedLinear: groups, in and out must be at least 1 but are 2, 3 and 0");
  expect_error<ShapeError>(
      [&] {
        layer(zeros({2, 5}, DType::f64));
      },
      "GroupedLinear: x must have shape [..., 6] but has [2, 5]");
}

}  // namespace
}  // namespace braid::nn::linear_test
