#include <braid/nn/init.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::init_test {
namespace {

double deviation(const Tensor& t) {
  const auto v = t.to_vector<double>();
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0) / static_cast<double>(v.size()));
}

TEST(Init, HasTheDeviationThatItsNameSays) {
  Rng rng(1);
  const Shape shape{300, 200};  // [out, in]
  EXPECT_NEAR(deviation(init::normal(shape, 0.5, rng)), 0.5, 0.005);
  EXPECT_NEAR(deviation(init::uniform(shape, 0.5, rng)), 0.5 / std::sqrt(3), 0.003);
  EXPECT_NEAR(deviation(init::xavier_normal(shape, rng)), std::sqrt(2.0 / 500), 0.001);
  EXPECT_NEAR(deviation(init::xavier_uniform(shape, rng, DType::f64, 2)), 2 * std::sqrt(2.0 / 500), 0.002);
  EXPECT_NEAR(deviation(init::xavier_uniform(shape, rng)), std::sqrt(2.0 / 500), 0.001);
  EXPECT_NEAR(deviation(init::kaiming_normal(shape, rng)), std::sqrt(2.0 / 200), 0.001);
  EXPECT_NEAR(deviation(init::kaiming_uniform(shape, rng)), std::sqrt(2.0 / 200), 0.001);
  EXPECT_NEAR(deviation(init::kaiming_uniform(shape, rng, DType::f64, 1)), std::sqrt(1.0 / 200), 0.001);
}

TEST(Init, CountsTheFieldOfAKernelAsFan) {
  Rng rng(2);
  EXPECT_NEAR(deviation(init::kaiming_normal({64, 32, 3, 3}, rng, DType::f32, 1)), std::sqrt(1.0 / (32 * 9)), 0.001);
  EXPECT_NEAR(deviation(init::xavier_normal({64, 32, 3, 3}, rng)), std::sqrt(2.0 / (96 * 9)), 0.0015);
}

TEST(Init, KeepsUniformWithinItsBound) {
  Rng rng(3);
  const auto values = init::uniform({1000}, 0.25, rng, DType::f64).to_vector<double>();
  EXPECT_TRUE(std::ranges::all_of(values, [](double v) { return -0.25 <= v && v < 0.25; }));
}

TEST(Init, RepeatsForTheSameRng) {
  Rng a(4), b(4);
  EXPECT_TRUE(identical(init::xavier_normal({3, 5}, a), init::xavier_normal({3, 5}, b)));
}

TEST(Init, GivesPlaceholdersThatDrawNothing) {
  Rng a(4), b(4);
  {
    const init::Placeholders guard;
    const Tensor x = init::normal({1 << 20, 1 << 20}, 1, a, DType::f64);
    EXPECT_EQ(x.shape(), Shape({1 << 20, 1 << 20}));
    EXPECT_EQ(x.at({5, 6}), 0);
    EXPECT_EQ(init::kaiming_uniform({2, 3}, a).to_vector<float>(), std::vector<float>(6));
  }
  EXPECT_TRUE(identical(init::normal({3}, 1, a), init::normal({3}, 1, b)));
}

TEST(Init, NeedsFans) {
  Rng rng;
  expect_error<ShapeError>([&] { init::xavier_uniform({3}, rng); },
                           "xavier_uniform: shape must have at least 2 axes to have fans but is [3]");
  expect_error<ShapeError>([&] { init::kaiming_normal({}, rng); },
                           "kaiming_normal: shape must have at least 2 axes to have fans but is []");
}

}  // namespace
}  // namespace braid::nn::init_test
