#include <apps/stability/sharpness.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>

namespace braid::sharpness_test {
namespace {

constexpr std::array<double, 3> kCurvature{4, 7, 1};

struct Point {
  Var at;  // [3]
  void params(auto&& visit) { visit("at", at); }
};

/// A sum of parabolas, whose Hessian is diagonal.
Var loss(const Point& p) { return 0.5 * sum(Tensor::of<double>({3}, kCurvature) * p.at * p.at); }

TEST(Sharpness, IsThatOfTheMatrixThatMultipliesStepsOfAdamW) {
  const nn::AdamWSettings settings{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0};
  nn::AdamW optimizer(settings);
  Point point{Tensor::of<double>({3}, {-0.01, 2, 0.3})};
  std::array<double, 3> moments{};
  for (int step = 1; step <= 3; ++step) {
    const auto [value, grads] = value_and_grad(loss)(point);
    const std::vector<double> gradient = grads.at.value().to_vector<double>();
    double largest = 0;  // in coordinates that are stretched by the fourth roots of the second moments
    for (std::size_t i = 0; i < 3; ++i) {
      moments[i] = 0.9 * moments[i] + 0.1 * gradient[i] * gradient[i];
      largest = std::max(largest, kCurvature[i] / (std::sqrt(moments[i] / (1 - std::pow(0.9, step))) + 1e-3));
    }
    if (step > 1) {
      const stability::Sharpness measured = stability::sharpness(loss, point, grads, optimizer, settings);
      EXPECT_NEAR(measured.largest, 7, 0.03 * 7) << step;
      EXPECT_NEAR(measured.preconditioned, largest, 0.03 * largest) << step;
      EXPECT_NEAR(measured.limit, 2 * 1.8 / (0.2 * 0.01), 1e-9) << step;
    }
    optimizer.step(point, grads);
  }
}

}  // namespace
}  // namespace braid::sharpness_test
