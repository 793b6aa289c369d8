#include <braid/autograd/gradcheck.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/core/map.h>
#include <braid/core/random.h>

namespace braid {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// `x^3` with a vjp that is `factor` times too large, or NaN.
Var cube(const Var& x, double factor = 1) {
  const auto value = [](auto v) { return v * v * v; };
  return record("cube", map("cube", value, x.value()), {x}, [x = x.value(), factor](const Tensor& dy) {
    const auto vjp = [factor](auto dy, auto x) { return static_cast<decltype(x)>(factor) * dy * 3 * x * x; };
    return map("cube", vjp, dy, x);
  });
}

struct Polynomial {
  Var linear, cubic;
  Var operator()(const Var& x) const { return linear * x + cubic * cube(x); }
  void params(auto&& visit) {
    visit("linear", linear);
    visit("cubic", cubic);
  }
};

Tensor points() { return Tensor::of<double>({2, 3}, {-2, -1, -0.5, 0, 1, 3}); }

TEST(Gradcheck, PassesACorrectVjpFarBelowTheTolerance) {
  const GradcheckResult result = gradcheck([](auto x) { return cube(x[0]); }, {points()});
  EXPECT_TRUE(result) << result.message;
  EXPECT_LT(result.worst, 1e-9);
  EXPECT_EQ(result.derivatives, 6);
}

TEST(Gradcheck, FindsAnErrorOfOnePartInAHundredThousand) {
  const GradcheckResult result = gradcheck([](auto x) { return cube(x[0], 1 + 1e-5); }, {points()});
  EXPECT_FALSE(result);
  EXPECT_NEAR(result.worst, 1e-5, 1e-8);
}

TEST(Gradcheck, NamesTheInputTheElementAndBothValues) {
  // Right in the first input; the second is cut off the tape.
  const auto f = [](auto x) { return x[0] + detach(x[1]) * 2; };
  const Tensor a = Tensor::of<double>({1, 2}, {1, 2});
  const std::string message = gradcheck(f, {a, a}).message;
  EXPECT_THAT(message, StartsWith("gradcheck: input 1, element [0, "));
  EXPECT_THAT(message, HasSubstr("]: analytic 0, numeric "));
  EXPECT_THAT(message, HasSubstr(", relative error 1, tolerance 1e-06"));
}

TEST(Gradcheck, UsesTheNamesThatItIsGiven) {
  EXPECT_THAT(gradcheck([](auto x) { return detach(x[0]); }, {ones({1}, DType::f64)}, {}, {"weight"}).message,
              StartsWith("gradcheck: weight, element [0]: analytic 0, numeric "));
}

TEST(Gradcheck, ChecksLargeInputsAlongRandomDirections) {
  Rng rng(1);
  const Tensor x = randn({40, 50}, rng, DType::f64);
  const GradcheckResult right = gradcheck([](auto x) { return cube(x[0]); }, {x}, {.directions = 5});
  EXPECT_TRUE(right) << right.message;
  EXPECT_EQ(right.derivatives, 5);
  const GradcheckResult wrong = gradcheck([](auto x) { return cube(x[0], 1.001); }, {x});
  EXPECT_FALSE(wrong);
  EXPECT_THAT(wrong.message, StartsWith("gradcheck: input 0, random direction "));
}

TEST(Gradcheck, ReadsViewsInPlace) {
  const Tensor x = points().transpose().slice(0, 1, 3);
  const GradcheckResult result = gradcheck([](auto x) { return cube(x[0]) * x[1]; }, {x, x.broadcast_to({4, 2, 2})});
  EXPECT_TRUE(result) << result.message;
}

TEST(Gradcheck, AcceptsOutputsThatAreViews) {
  const auto f = [](auto x) {
    return record("transpose", x[0].value().transpose(), {x[0]}, [](const Tensor& dy) { return dy.transpose(); });
  };
  const GradcheckResult result = gradcheck(f, {points()});
  EXPECT_TRUE(result) << result.message;
}

TEST(Gradcheck, AcceptsInputsWithoutElements) {
  const GradcheckResult result = gradcheck([](auto x) { return cube(x[0]); }, {zeros({0, 3}, DType::f64)});
  EXPECT_TRUE(result);
  EXPECT_EQ(result.message, "gradcheck: no elements to compare");
}

TEST(Gradcheck, FindsErrorsInSmallGradients) {
  // The gradient is about 0.01 and its error 1e-6, which is 1e-4 of it.
  const GradcheckResult result =
      gradcheck([](auto x) { return cube(x[0], 1 + 1e-4) * 0.003; }, {ones({2}, DType::f64)});
  EXPECT_NEAR(result.worst, 1e-4, 1e-7);
}

TEST(Gradcheck, NanIsAnInfiniteError) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const GradcheckResult result = gradcheck([&](auto x) { return cube(x[0], nan); }, {points()});
  EXPECT_FALSE(result);
  EXPECT_TRUE(std::isinf(result.worst));
}

TEST(Gradcheck, RejectsWhatIsNotF64) {
  const auto thrown = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const DTypeError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const Tensor x = points();
  EXPECT_EQ(thrown([&] {
              gradcheck([](auto x) { return x[0]; }, {x, x.to(DType::f32)});
            }),
            "gradcheck: input 1 must be f64 but is f32");
  EXPECT_EQ(thrown([&] { gradcheck([](auto) { return Var(ones({1})); }, {x}); }),
            "gradcheck: the output of f must be f64 but is f32");
}

TEST(Gradcheck, ChecksTheParametersOfAModuleByName) {
  const Polynomial module{ones({3}, DType::f64), full({3}, 0.5, DType::f64)};
  const Tensor x = points();
  const GradcheckResult right = gradcheck_module(module, [&](const Polynomial& m) { return m(x); });
  EXPECT_TRUE(right) << right.message;
  EXPECT_EQ(right.derivatives, 7);  // one along both
  const auto frozen = [&](const Polynomial& m) { return m.linear * x + detach(m.cubic) * x; };
  EXPECT_THAT(gradcheck_module(module, frozen).message, StartsWith("gradcheck: cubic, element ["));
}

}  // namespace
}  // namespace braid
