#include <braid/nn/conv1d.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::conv1d_test {
namespace {

using testing::ElementsAre;

TEST(Conv1d, ConvolvesWithItsParametersAndSettings) {
  Rng rng(1);
  const Conv1dSettings settings{.stride = 2, .groups = 2, .padding = 1};
  const Conv1d layer(4, 6, 3, rng, settings, {.dtype = DType::f64});
  EXPECT_EQ(layer.weight.shape(), (Shape{6, 2, 3}));
  const Tensor x = randn({2, 7, 4}, rng, DType::f64);
  EXPECT_EQ(layer(x).shape(), (Shape{2, 4, 6}));
  expect_close(layer(x).value(), conv1d(x, layer.weight, layer.bias, settings).value());
  Conv1d channels_first = layer;
  channels_first.settings.channels = Channels::first;
  expect_close(channels_first(x.transpose()).value(), layer(x).value().transpose());
}

TEST(Conv1d, NamesItsParametersAndTrainsThem) {
  Rng rng(2);
  const Tensor x = randn({2, 5, 4}, rng, DType::f64);
  const Conv1d with_bias(4, 3, 2, rng, {.dilation = 2}, {.dtype = DType::f64});
  const Conv1d depthwise(4, 4, 3, rng, {.groups = 4, .causal = true}, {.bias = false, .dtype = DType::f64});
  EXPECT_THAT(parameter_names(with_bias), ElementsAre("weight", "bias"));
  EXPECT_THAT(parameter_names(depthwise), ElementsAre("weight"));
  for (const Conv1d& layer : {with_bias, depthwise}) expect_gradients(layer, [&](const Conv1d& m) { return m(x); });
}

TEST(Conv1d, StartsWithinOneOverTheRootOfWhatAnOutputSees) {
  Rng rng(3);
  const Conv1d layer(50, 40, 4, rng, {.groups = 2});  // 25 channels times 4 taps
  EXPECT_EQ(layer.weight.dtype(), DType::f32);
  const auto values = layer.weight.value().to_vector<double>();
  const auto [low, high] = std::ranges::minmax(values);
  EXPECT_GE(low, -0.1);
  EXPECT_LE(high, 0.1);
  EXPECT_LT(low, -0.099);
  EXPECT_GT(high, 0.099);
}

TEST(Conv1d, TakesPaddingBelow2ToThe31) {
  Rng rng(4);
  const std::int64_t most = (std::int64_t{1} << 31) - 1;
  Conv1d layer(1, 1, 1, rng, {.stride = most, .padding = most}, {.dtype = DType::f64});
  const Tensor x = ones({1, 1, 1}, DType::f64);
  const double weight = layer.weight.item(), bias = layer.bias.item();
  expect_close(layer(x).value(), Tensor::of<double>({1, 3, 1}, {bias, weight + bias, bias}));
  for (const std::int64_t padding : {std::int64_t{-1}, most + 1}) {
    layer.settings.padding = padding;
    expect_error<ValueError>([&] { layer(x); },
                             fmt::format("conv1d: padding must lie in [0, 2^31) but is {}", padding));
  }
}

TEST(Conv1d, RejectsBadSizes) {
  Rng rng;
  expect_error<ValueError>([&] { Conv1d(2, 2, 0, rng); },
                           "Conv1d: in, out and taps must be at least 1 but are 2, 2 and 0");
  expect_error<ValueError>([&] { Conv1d(4, 6, 3, rng, {.groups = 4}); },
                           "Conv1d: groups must divide the 4 inputs and 6 outputs but is 4");
}

}  // namespace
}  // namespace braid::nn::conv1d_test
