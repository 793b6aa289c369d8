#include <braid/nn/conv2d.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::conv2d_test {
namespace {

using testing::ElementsAre;

TEST(Conv2d, ConvolvesWithItsParametersAndSettings) {
  Rng rng(1);
  const Conv2dSettings settings{.stride = {2, 1}, .padding = 1, .groups = 2};
  const Conv2d layer(4, 6, {3, 2}, rng, settings, {.dtype = DType::f64});
  EXPECT_EQ(layer.weight.shape(), (Shape{6, 2, 3, 2}));
  const Tensor x = randn({2, 7, 5, 4}, rng, DType::f64);
  EXPECT_EQ(layer(x).shape(), (Shape{2, 4, 6, 6}));
  expect_close(layer(x).value(), conv2d(x, layer.weight, layer.bias, settings).value());
  Conv2d channels_first = layer;
  channels_first.settings.channels = Channels::first;
  expect_close(channels_first(x.permute({0, 3, 1, 2})).value(), layer(x).value().permute({0, 3, 1, 2}));
}

TEST(Conv2d, NamesItsParametersAndTrainsThem) {
  Rng rng(2);
  const Tensor x = randn({2, 5, 4, 4}, rng, DType::f64);
  const Conv2d with_bias(4, 3, 2, rng, {.dilation = 2}, {.dtype = DType::f64});
  const Conv2d depthwise(4, 4, 3, rng, {.padding = 1, .groups = 4}, {.bias = false, .dtype = DType::f64});
  EXPECT_THAT(parameter_names(with_bias), ElementsAre("weight", "bias"));
  EXPECT_THAT(parameter_names(depthwise), ElementsAre("weight"));
  for (const Conv2d& layer : {with_bias, depthwise}) expect_gradients(layer, [&](const Conv2d& m) { return m(x); });
}

TEST(Conv2d, StartsWithinOneOverTheRootOfWhatAnOutputSees) {
  Rng rng(3);
  const Conv2d layer(50, 40, 2, rng, {.groups = 2});  // 25 channels times 4 taps
  EXPECT_EQ(layer.weight.dtype(), DType::f32);
  const auto values = layer.weight.value().to_vector<double>();
  const auto [low, high] = std::ranges::minmax(values);
  EXPECT_GE(low, -0.1);
  EXPECT_LE(high, 0.1);
  EXPECT_LT(low, -0.099);
  EXPECT_GT(high, 0.099);
}

TEST(Conv2d, RejectsBadSizes) {
  Rng rng;
  expect_error<ValueError>(
      [&] {
        Conv2d(2, 2, {1, 0}, rng);
      },
      "Conv2d: in, out and size must be at least 1 but are 2, 2 and 1 x 0");
  expect_error<ValueError>([&] { Conv2d(4, 6, 3, rng, {.groups = 4}); },
                           "Conv2d: groups must divide the 4 inputs and 6 outputs but is 4");
}

}  // namespace
}  // namespace braid::nn::conv2d_test
