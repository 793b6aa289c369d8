#include <braid/autograd/verify/gradcheck.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/core/random.h>

namespace braid::gradcheck_diagnosis_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Tensor points() { return Tensor::of<double>({2, 3}, {-2, -1, -0.5, 0, 1, 3}); }

TEST(GradcheckDiagnosis, SaysThatAGradientIsNotDeterministic) {
  int calls = 0;
  const auto f = [&](auto x) {
    return record("forgetful", x[0].value().clone(), {x[0]}, [&](const Tensor& dy) { return (1 + ++calls % 2) * dy; });
  };
  EXPECT_EQ(gradcheck(f, {points()}).message,
            "gradcheck: the gradient of input 0 is not deterministic: two backward passes differ; does a vjp read a dy "
            "that is a view without contiguous()?");
}

TEST(GradcheckDiagnosis, FindsAVjpThatReadsAViewAsIfItWereNone) {
  const auto twice = [](const Var& x) {
    return record("twice", Tensor(x.value() * 2.0), {x}, [](const Tensor& dy) {
      return Tensor::of<double>(dy.shape(), std::span(dy.data<double>(), static_cast<std::size_t>(dy.numel()))) * 2.0;
    });
  };
  EXPECT_TRUE(gradcheck([&](auto x) { return twice(x[0]); }, {points()}));
  for (const int order : {1, 2}) {
    const auto f = [&](auto x) { return exp(transpose(twice(sin(x[0])))); };
    const GradcheckResult result = gradcheck(f, {points()}, {.order = order, .by = GradcheckOptions::By::differences});
    EXPECT_FALSE(result) << order;
    EXPECT_EQ(result.kinks, 0);
    EXPECT_THAT(result.message, HasSubstr("first wrong vjp: op 'twice' (#2 of 4), input 0 [2, 3], element "));
  }
}

TEST(GradcheckDiagnosis, SaysThatAFunctionRoundsToF32) {
  const auto f = [](auto x) { return cast(cast(exp(x[0]), DType::f32), DType::f64); };
  EXPECT_THAT(gradcheck(f, {points()}).message,
              HasSubstr("f rounds to 8e-09 of its values: does it compute in f32 somewhere?"));
  const auto zero = [](auto x) { return cast(cast(sin(x[0] - 1.0), DType::f32), DType::f64); };
  EXPECT_THAT(gradcheck(zero, {ones({1}, DType::f64)}).message, Not(HasSubstr("f rounds to ")));
}

TEST(GradcheckDiagnosis, WhatStopsTheSecondOrderIsAnInfiniteError) {
  bool second = false;
  const auto f = [&](auto x) {
    return record("broken", x[0].value().clone(), {x[0]},
                  [&](const Tensor& dy) { return Tensor((second ? INFINITY : 1.0) * dy); });
  };
  const GradcheckOptions options{.order = 2, .progress = [&](auto, auto) { second = true; }};
  EXPECT_EQ(gradcheck(f, {ones({1}, DType::f64)}, options).worst, INFINITY);
}

TEST(GradcheckDiagnosis, SaysThatAFunctionIsNotDeterministic) {
  Rng rng(1);
  const auto f = [&](auto x) { return dropout(x[0], 0.5, rng); };
  const GradcheckResult result = gradcheck(f, {ones({20}, DType::f64)});
  EXPECT_FALSE(result);
  EXPECT_EQ(
      result.message,
      "gradcheck: f is not deterministic: two calls differ; when it draws random numbers, give each a copy of one Rng");
}

TEST(GradcheckDiagnosis, SaysThatAFunctionChangesItsInputs) {
  const auto f = [](auto x) {
    const_cast<double*>(x[0].value().template data<double>())[1] += 1;
    return x[0] * 2.0;
  };
  EXPECT_EQ(gradcheck(f, {points().clone()}).message, "gradcheck: f changes input 0, which it may only read");
}

TEST(GradcheckDiagnosis, SaysWhereAFunctionReturnsNan) {
  EXPECT_EQ(gradcheck([](auto x) { return log(x[0]); }, {Tensor::of<double>({2, 1}, {1, -1})}).message,
            "gradcheck: f returns nan in element [1, 0] of its output [2, 1]");
  const Tensor negative_nan = scalar(-std::numeric_limits<double>::quiet_NaN(), DType::f64);
  EXPECT_EQ(gradcheck([&](auto x) { return x[0] * negative_nan; }, {ones({1}, DType::f64)}).message,
            "gradcheck: f returns nan in element [0] of its output [1]");
  EXPECT_EQ(gradcheck([](auto x) { return 1.0 / x[0]; }, {zeros({1}, DType::f64)}).message,
            "gradcheck: f returns inf in element [0] of its output [1]");
}

TEST(GradcheckDiagnosis, ShowsWhatCouldNotBeChecked) {
  const double inf = std::numeric_limits<double>::infinity();
  const GradcheckResult result =
      gradcheck([](auto x) { return logsumexp(x[0], {-1}); }, {Tensor::of<double>({2, 2}, {1, -inf, 2, 3})});
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message, StartsWith("gradcheck: input 0, element [0, 1]: analytic 0, numeric nan"));
  EXPECT_THAT(result.message, HasSubstr("\n4 derivatives: 0 wrong, 0 undecidable, 0 at kinks, 1 unchecked"));
  EXPECT_THAT(result.table(), EndsWith("  unchecked\n"));
  const auto point = [](auto x) { return sqrt(-(x[0] * x[0])); };  // not finite anywhere else, its gradient nowhere
  EXPECT_EQ(gradcheck(point, {zeros({1}, DType::f64)}).unchecked, 1);
}

TEST(GradcheckDiagnosis, SaysThatAnInputHasNoInfluence) {
  const GradcheckResult unused = gradcheck([](auto x) { return x[0] * 2.0; }, {points(), points()});
  EXPECT_TRUE(unused);
  EXPECT_THAT(unused.message, HasSubstr("\nf does not depend on input 1, as far as differences can tell"));
  EXPECT_THAT(unused.message, Not(HasSubstr("depend on input 0")));
  const GradcheckResult shifted =
      gradcheck([](auto x) { return softmax(x[0] + x[1]); }, {points(), ones({2, 1}, DType::f64)});
  EXPECT_TRUE(shifted) << shifted.message;
  EXPECT_THAT(shifted.message, HasSubstr("\nf does not depend on input 1"));
  const GradcheckResult linear = gradcheck([](auto x) { return exp(x[0]) + x[1]; }, {points(), points()}, {.order = 2});
  EXPECT_THAT(linear.message, HasSubstr("\nf's gradient does not depend on input 1, as far as"));
}

// What random programs have shown to be hard: right gradients where differences mislead.

TEST(GradcheckOfHardFunctions, AGradientThatIsAllRoundingIsNotWrong) {
  const auto f = [](auto x) { return layer_norm(x[2], x[1], slice(rms_norm(x[0], x[0], 1e-5), 0, 2, 3), 1e-5); };
  const std::vector<Tensor> inputs{ones({3}, DType::f64), Tensor::of<double>({1}, {0.8723975419998169}),
                                   Tensor::of<double>({2, 2, 1}, {0, 0, -32.5, -33.75})};
  const GradcheckResult result = gradcheck(f, inputs);
  EXPECT_TRUE(result) << result.message;
}

TEST(GradcheckOfHardFunctions, PolesNearByAreNotRounding) {
  const auto f = [](auto x) { return x[2] / log(abs(layer_norm(x[0], x[0], x[1], 1e-5))); };
  const std::vector<Tensor> inputs{full({2}, 2.918778419494629, DType::f64), Tensor::of<double>({2}, {-0.5, 1.25}),
                                   scalar(-0.019911590963602066, DType::f64)};
  const GradcheckResult result = gradcheck(f, inputs);
  EXPECT_TRUE(result) << result.message;
}

TEST(GradcheckOfHardFunctions, WhatCannotMoveTheFunctionIsNotWrong) {
  const auto f = [](auto x) { return cross_entropy(x[0], Tensor::of<std::int32_t>({}, {0}), -1); };
  const GradcheckResult result = gradcheck(f, {Tensor::of<double>({2}, {9.25, -53.25})});
  EXPECT_TRUE(result) << result.message;
}

TEST(GradcheckOfHardFunctions, CurvatureHidesKinks) {
  const auto f = [](auto x) {  // its gradient is half the slope of the first branch, which steps beyond 8e-6 see alone
    const Var d = x[0] - 1;
    return minimum(2 + 8e-9 * d - 1e-3 * d * d, 2);
  };
  const GradcheckResult result = gradcheck(f, {ones({1}, DType::f64)});
  EXPECT_TRUE(result) << result.message;
  const auto wrong = [&](auto x) { return f(x) + 1e-5 * (x[0] - x[0].value()); };
  EXPECT_FALSE(gradcheck(wrong, {ones({1}, DType::f64)}));
}

TEST(GradcheckOfHardFunctions, KinksMeetAlongDirectionsOfMixedSigns) {
  const auto f = [](auto x) { return max(min(x[0], {0}, true) * x[1], {1}); };
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<Tensor> inputs{ones({2, 6}, DType::f64), ones({1, 6}, DType::f64)};
    const GradcheckResult result = gradcheck(f, inputs, {.max_elements = 1, .seed = seed});
    EXPECT_TRUE(result.ok) << result.message;
    EXPECT_GT(result.kinks, 0);
  }
}

TEST(GradcheckOfHardFunctions, ASpikeMayBeNarrowerThanTheFirstSteps) {
  for (const double width : {1e-2, 1e-4, 1e-6, 1e-7})
    for (const double at : {0.3, 1.0, -0.7}) {
      const auto f = [&](auto x) {
        const Var d = (x[0] - 1.0) * (1 / width);
        return x[0] + width * exp(-(d * d));
      };
      const GradcheckResult result = gradcheck(f, {full({1}, 1 + at * width, DType::f64)}, {.tolerance = 1e-5});
      EXPECT_TRUE(result.ok) << width << " " << at << " " << result.message;
      const auto wrong = [&](auto x) { return f(x) + 1e-2 * (x[0] - x[0].value()); };
      EXPECT_FALSE(gradcheck(wrong, {full({1}, 1 + at * width, DType::f64)}, {.tolerance = 1e-5, .blame = false}).ok)
          << width;
    }
}

}  // namespace
}  // namespace braid::gradcheck_diagnosis_test
