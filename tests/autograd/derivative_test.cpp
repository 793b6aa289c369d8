#include <braid/autograd/derivative.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/random.h>

namespace braid::derivative_test {
namespace {

/// f'(x) as exactly as f64 allows with steps below |x| / 20, or from 1 / 20 on where x is 0: f may have poles or bends
/// as near as that.
Derivative derivative(const std::function<double(double)>& f, double x) {
  const double y = f(x);
  Extrapolation extrapolation;
  const auto add = [&](double step) -> const Extrapolation& {
    step = (x + step) - x;  // the difference after rounding
    const double above = f(x + step), below = f(x - step), up = above - y, down = y - below;
    // What f does to x first is rounded too, and that moves f as x would.
    const double size = std::max({std::abs(above), std::abs(y), std::abs(below)});
    const double error =
        std::numeric_limits<double>::epsilon() * (size + std::abs(x) * std::max(std::abs(up), std::abs(down)) / step);
    extrapolation.add(step, {up, down, error, std::min(up, down), std::max(up, down), error});
    return extrapolation;
  };
  return descend(x == 0 ? 1 : std::abs(x), add, [](const Derivative&) { return false; });
}

struct Function {
  const char* name;
  double (*f)(double);
  double (*derivative)(double);
  double low, high;  // where; drawn evenly, or evenly in the logarithm where low > 0
};

// Steep, flat, oscillating, near poles, and of all scales.
const std::vector<Function> kFunctions{
    {"exp(30 x)", [](double x) { return std::exp(30 * x); }, [](double x) { return 30 * std::exp(30 * x); }, -1, 1},
    {"exp(-30 x)", [](double x) { return std::exp(-30 * x); }, [](double x) { return -30 * std::exp(-30 * x); }, -1, 1},
    {"1 / x", [](double x) { return 1 / x; }, [](double x) { return -1 / (x * x); }, 1e-8, 1},
    {"1 / x^2", [](double x) { return 1 / (x * x); }, [](double x) { return -2 / (x * x * x); }, 1e-6, 1},
    {"log x", [](double x) { return std::log(x); }, [](double x) { return 1 / x; }, 1e-6, 1e6},
    {"sqrt x", [](double x) { return std::sqrt(x); }, [](double x) { return 0.5 / std::sqrt(x); }, 1e-6, 1e6},
    {"sin x", [](double x) { return std::sin(x); }, [](double x) { return std::cos(x); }, -3, 3},
    {"sin(1000 x)", [](double x) { return std::sin(1000 * x); }, [](double x) { return 1000 * std::cos(1000 * x); }, -3,
     3},
    {"sin(1 / x)", [](double x) { return std::sin(1 / x); }, [](double x) { return -std::cos(1 / x) / (x * x); }, 0.01,
     1},
    {"tanh(1e6 x)", [](double x) { return std::tanh(1e6 * x); },
     [](double x) { return 1e6 / std::pow(std::cosh(1e6 * x), 2); }, -3e-6, 3e-6},
    {"1e8 x^3", [](double x) { return 1e8 * x * x * x; }, [](double x) { return 3e8 * x * x; }, -2, 2},
    {"1e-8 x^3", [](double x) { return 1e-8 * x * x * x; }, [](double x) { return 3e-8 * x * x; }, -2, 2},
    {"x^7", [](double x) { return std::pow(x, 7); }, [](double x) { return 7 * std::pow(x, 6); }, 1e5, 1e6},
    {"exp(-50 x^2)", [](double x) { return std::exp(-50 * x * x); },
     [](double x) { return -100 * x * std::exp(-50 * x * x); }, -1, 1},
    {"sigmoid(40 x)", [](double x) { return 1 / (1 + std::exp(-40 * x)); },
     [](double x) { return 10 / std::pow(std::cosh(20 * x), 2); }, -1, 1},
    {"1 / (1 + 25 x^2)", [](double x) { return 1 / (1 + 25 * x * x); },
     [](double x) { return -50 * x / std::pow(1 + 25 * x * x, 2); }, -1, 1},
    {"x log x", [](double x) { return x * std::log(x); }, [](double x) { return 1 + std::log(x); }, 1e-3, 10},
    {"log(e^x + e^-3x + 1)", [](double x) { return std::log(std::exp(x) + std::exp(-3 * x) + 1); },
     [](double x) { return (std::exp(x) - 3 * std::exp(-3 * x)) / (std::exp(x) + std::exp(-3 * x) + 1); }, -5, 5},
    {"1 + 1e-2 sin x", [](double x) { return 1 + 1e-2 * std::sin(x); }, [](double x) { return 1e-2 * std::cos(x); }, -3,
     3},
    {"atan(100 (x - 0.3))", [](double x) { return std::atan(100 * (x - 0.3)); },
     [](double x) { return 100 / (1 + std::pow(100 * (x - 0.3), 2)); }, 0, 1},
};

class EveryFunction : public testing::TestWithParam<Function> {
 protected:
  static constexpr int kPoints = 1000;

  /// Calls visit(found, truth, size of the best relative error that f64 allows) at points of the range.
  static void at_points(const Function& function, const auto& visit) {
    Rng rng(1);
    const Tensor points = rand({kPoints}, rng, DType::f64);
    for (const double u : points.to_vector<double>()) {
      const double x = function.low > 0 ? function.low * std::pow(function.high / function.low, u)
                                        : function.low + (function.high - function.low) * u;
      const double truth = function.derivative(x);
      // f is known to eps |f|, x to eps |x|, and steps are at most of the size of x.
      const double allowed = 1e-15 * (std::abs(function.f(x) / (truth * x)) + 1);
      visit(derivative(function.f, x), truth, allowed);
    }
  }
};

TEST_P(EveryFunction, TheEstimateCoversTheError) {
  int covered = 0;
  at_points(GetParam(), [&](const Derivative& found, double truth, double) {
    covered += std::abs(found.value - truth) <= found.error + 1e-15 * std::abs(truth);
  });
  EXPECT_GE(covered, kPoints * 99 / 100);
}

TEST_P(EveryFunction, TheDerivativeIsRightToNineDigitsWhereF64AllowsIt) {
  int points = 0;
  at_points(GetParam(), [&](const Derivative& found, double truth, double allowed) {
    if (allowed > 1e-12) return;
    ++points;
    EXPECT_NEAR(found.value / truth, 1, 1e-9);
  });
  EXPECT_GE(points, kPoints / 2);
}

INSTANTIATE_TEST_SUITE_P(Known, EveryFunction, testing::ValuesIn(kFunctions),
                         [](const auto& tested) { return "number_" + std::to_string(tested.index); });

TEST(Derivative, BoundsOfOneSidedDerivativesShowAKink) {
  const Derivative kink = derivative([](double x) { return std::abs(x) + 2 * x; }, 0);
  EXPECT_TRUE(kink.has_kink());
  EXPECT_NEAR(kink.low, 1, 1e-12);
  EXPECT_NEAR(kink.high, 3, 1e-12);
  EXPECT_FALSE(derivative([](double x) { return x * x * x + x; }, 0).has_kink());
}

TEST(Derivative, AKinkNearbyIsNone) {
  const Derivative near = derivative([](double x) { return std::max(x, 1.0); }, 1 + 1e-5);
  EXPECT_FALSE(near.has_kink());
  EXPECT_NEAR(near.value, 1, 1e-9);
}

TEST(Derivative, ABoundOfTheDomainLeavesTheOtherSide) {
  const Derivative found = derivative([](double x) { return x < 0 ? std::nan("") : std::exp(x); }, 0);
  EXPECT_NEAR(found.value, 1, 1e-9);
  EXPECT_GE(found.error, std::abs(found.value - 1));
}

TEST(Derivative, StepsLeaveTheDomainUntilTheyFit) {
  const Derivative found = derivative([](double x) { return std::log(x - 0.999); }, 1);
  EXPECT_NEAR(found.value, 1000, 1e-6);
}

TEST(Derivative, AJumpAndAnInfiniteSlopeAreUncertain) {
  const Derivative jump = derivative([](double x) { return x < 0 ? 0.0 : 1.0; }, 0);
  EXPECT_GT(jump.error, 0.1 * std::abs(jump.value));
  const Derivative vertical = derivative([](double x) { return std::cbrt(x); }, 0);
  EXPECT_GT(vertical.error, 0.01 * std::abs(vertical.value));
}

// The noises of the two quotients are 1 and 5, those of one side 2 and 10.
TEST(Derivative, TheNoiseOfBothQuotientsIsInTheErrorOfTheirLimit) {
  Extrapolation central, below;
  for (const auto& [step, noise] : {std::pair(1.0, 2.0), {0.5, 5.0}}) {
    central.add(step, {.up = step, .down = step, .noise = noise});
    below.add(step, {.up = std::nan(""), .down = step, .noise = noise});
  }
  EXPECT_EQ(central.best().error, 3 * (5 + (5 + 1) / 3.0));
  EXPECT_EQ(below.best().value, 1);
  EXPECT_EQ(below.best().error, 3 * (10 + (10 + 2) / 1.0));
}

TEST(Derivative, NoValueNoDerivative) {
  const Derivative none = derivative([](double) { return std::nan(""); }, 1);
  EXPECT_TRUE(std::isnan(none.value));
  EXPECT_TRUE(std::isinf(none.error));
}

}  // namespace
}  // namespace braid::derivative_test
