#include <braid/autograd/verify/gradcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/core/map.h>
#include <braid/core/random.h>

namespace braid::gradcheck_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
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
  EXPECT_THAT(result.message, StartsWith("gradcheck by differences: passed; the worst is input 0, element ["));
  EXPECT_THAT(result.message, Not(HasSubstr("\n")));
}

TEST(Gradcheck, SaysWhatHasPassed) {
  using By = GradcheckOptions::By;
  const auto message = [](By by, int order) {
    return gradcheck([](auto x) { return exp(x[0]); }, {points()}, {.order = order, .by = by}).message;
  };
  EXPECT_THAT(message(By::differences, 2),
              StartsWith("gradcheck by differences, of first and second order: passed; the worst is "));
  EXPECT_THAT(message(By::rules, 2),
              StartsWith("gradcheck by rules, of first and second order: passed; the worst is "));
  EXPECT_THAT(message(By::both, 1), StartsWith("gradcheck by differences and rules: passed; the worst is "));
  EXPECT_THAT(message(By::both, 2),
              StartsWith("gradcheck by differences and rules, of first and second order: passed; the worst is "));
  EXPECT_THAT(gradcheck([](auto x) { return -x[0]; }, {points()}, {.by = By::rules}).message,  // without an error
              StartsWith("gradcheck by rules: passed; the worst is "));
  const auto exp_of_first = [](auto x) { return exp(x[0]); };
  EXPECT_EQ(gradcheck(exp_of_first, {points()}, {.order = 2, .by = By::both}).derivatives, 6 + 1 + 6);
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

TEST(Gradcheck, FindsErrorsInGradientsFarBelowTheValue) {
  const auto f = [](auto x) { return 1 + 1e-9 * cube(x[0], 2); };
  EXPECT_FALSE(gradcheck(f, {ones({2}, DType::f64)}, {.blame = false}));
}

TEST(Gradcheck, ComparesSmallGradientsWithAThousandthOfTheLargest) {
  const auto f = [](auto x) {  // the derivative by its second element is 0
    return record("first", Tensor(x[0].value() * Tensor::of<double>({2}, {1, 0})), {x[0]}, [](const Tensor& dy) {
      return Tensor(dy * Tensor::of<double>({2}, {1, 1e-10}));
    });
  };
  EXPECT_TRUE(gradcheck(f, {ones({2}, DType::f64)}));
}

TEST(Gradcheck, NanIsAnInfiniteError) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const GradcheckResult result = gradcheck([&](auto x) { return cube(x[0], nan); }, {points()});
  EXPECT_FALSE(result);
  EXPECT_TRUE(std::isinf(result.worst));
}

TEST(Gradcheck, NamesTheElementThatIsNan) {
  const auto f = [](auto x) {
    return record("nan", x[0].value().clone(), {x[0]}, [](const Tensor& dy) {
      Tensor dx = dy.clone();
      dx.mutable_data<double>()[3] = std::numeric_limits<double>::quiet_NaN();
      return dx;
    });
  };
  const GradcheckResult result = gradcheck([&](auto x) { return f(std::vector{tanh(x[0])}); }, {ones({5}, DType::f64)});
  EXPECT_EQ(result.wrong, 1);
  EXPECT_THAT(result.message, StartsWith("gradcheck: input 0, element [3]: analytic nan"));
  EXPECT_THAT(result.message,
              HasSubstr("\nfirst wrong vjp: op 'nan' (#2 of 2), input 0 [5], element [3]: analytic nan"));
  EXPECT_THAT(result.message, Not(HasSubstr("\nthere ")));
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
            "gradcheck: input 1 must be f64 but is f32; nn::to_dtype() converts a module, to() a tensor");
  EXPECT_EQ(thrown([&] { gradcheck([](auto) { return Var(ones({1})); }, {x}); }),
            "gradcheck: the output of f must be f64 but is f32; nn::to_dtype() converts a module, to() a tensor");
}

TEST(Gradcheck, CountsKinksApart) {
  const Tensor at_zero = Tensor::of<double>({3}, {0, 1, -1});
  const auto kinks = [](const GradcheckFunction& f, const Tensor& x) {
    const GradcheckResult result = gradcheck(f, {x});
    EXPECT_TRUE(result) << result.message;
    return result.kinks;
  };
  EXPECT_EQ(kinks([](auto x) { return relu(x[0]); }, at_zero), 1);
  EXPECT_EQ(kinks([](auto x) { return abs(x[0]); }, at_zero), 1);
  EXPECT_EQ(kinks([](auto x) { return clamp(x[0], 0, 1); }, at_zero), 2);
  EXPECT_EQ(kinks([](auto x) { return max(x[0]); }, ones({4}, DType::f64)), 4);
  EXPECT_EQ(kinks([](auto x) { return x[0] * x[0] * x[0]; }, at_zero), 0);
  EXPECT_THAT(gradcheck([](auto x) { return relu(x[0]); }, {at_zero}).message,
              EndsWith("\n3 derivatives: 0 wrong, 0 undecidable, 1 at kinks"));
}

TEST(Gradcheck, OutsideTheOneSidedDerivativesIsWrongAtAKinkToo) {
  const auto f = [](auto x) {
    return record("relu", relu(x[0]).value(), {x[0]}, [](const Tensor& dy) { return 1.5 * dy; });
  };
  EXPECT_FALSE(gradcheck(f, {zeros({1}, DType::f64)}));
}

TEST(Gradcheck, AtAKinkTheGradientHasToBeRightOnEitherSide) {
  const auto f = [](auto x) {
    return record("relu", relu(x[0]).value(), {x[0]}, [x = x[0].value()](const Tensor& dy) {
      return map(
          "relu", [](auto dy, auto x) { return x >= 0 ? static_cast<decltype(dy)>(1.5) * dy : 0 * dy; }, dy, x);
    });
  };
  EXPECT_FALSE(gradcheck(f, {zeros({1}, DType::f64)}));
}

TEST(Gradcheck, SeveralKindsOfKinksMayMeet) {
  const auto f = [](auto x) { return max(min(x[0], {0}, true) * x[1], {1}); };
  const GradcheckResult result = gradcheck(f, {ones({2, 2}, DType::f64), ones({1, 2}, DType::f64)});
  EXPECT_TRUE(result) << result.message;
  EXPECT_GT(result.kinks, 0);
}

TEST(Gradcheck, NeedsNoStepForAnyScale) {
  Rng rng(3);
  const Tensor x = randn({6}, rng, DType::f64);
  for (const double in : {1e-6, 1.0, 1e6})
    for (const double out : {1e-8, 1.0, 1e8})
      for (const double error : {0.0, 1e-4}) {
        const auto f = [=](auto x) { return out * cube(tanh(x[0] * (1 / in)) + 2, 1 + error); };
        const GradcheckResult result = gradcheck(f, {Tensor(Var(x) * in)});
        EXPECT_EQ(result.ok, error == 0) << in << " " << out << " " << result.message;
        EXPECT_EQ(result.undecidable, 0);
      }
}

TEST(Gradcheck, SteepPlacesNeedSmallSteps) {
  const auto f = [](auto x) { return tanh(1e6 * (x[0] - 1.0)); };
  const GradcheckResult result = gradcheck(f, {Tensor::of<double>({2}, {1 + 1e-7, 1 - 3e-7})}, {.tolerance = 1e-5});
  EXPECT_TRUE(result) << result.message;
  EXPECT_EQ(result.undecidable, 0);
}

TEST(Gradcheck, RoundingMakesDerivativesUndecidableNotWrong) {
  const auto f = [](auto x) { return (x[0] + 1e12) - 1e12; };
  const GradcheckResult result = gradcheck(f, {points()});
  EXPECT_TRUE(result) << result.message;
  EXPECT_GT(result.undecidable, 0);
  EXPECT_THAT(result.message, HasSubstr(" undecidable"));
}

TEST(Gradcheck, NamesTheWrongElementOfALargeInput) {
  const auto f = [](auto x) {
    const auto vjp = [](const Tensor& dy) {
      Tensor dx = dy.clone();
      dx.mutable_data<double>()[1234] *= 2;
      return dx;
    };
    return record("identity", x[0].value().clone(), {x[0]}, vjp);
  };
  const GradcheckResult result = gradcheck(f, {ones({40, 50}, DType::f64)});
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message, HasSubstr("\nthere input 0, element [24, 34]: analytic "));
  EXPECT_THAT(gradcheck([](auto x) { return cube(x[0], 2); }, {points()}, {.max_elements = 5}).message,
              HasSubstr("\nthere input 0, element ["));
}

TEST(Gradcheck, ReportsWhatFailsBeforeTheRestLargeErrorsBeforeSmallWrongElementsBeforeWrongDirections) {
  std::vector<CheckedDerivative> ascending;
  const std::string direction = "random direction 3", element = "element [1, 2]";
  for (const double error : {1e-9, 1e-8, 1e-3, 1e-2, 0.5, 1.0})  // of right ones, the error alone counts
    ascending.push_back({.where = ascending.size() % 2 == 0 ? element : direction, .relative_error = error});
  for (const std::string& where : {direction, element})
    for (const double error : {1e-9, 1e-3, 1.0})
      ascending.push_back({.where = where, .relative_error = error, .verdict = Verdict::wrong});
  for (std::size_t i = 1; i < ascending.size(); ++i)
    EXPECT_LT(detail::severity(ascending[i - 1]), detail::severity(ascending[i])) << i;
  for (const char* where : {"random direction 3", "element [1, 2]"}) {
    const CheckedDerivative unchecked{.where = where, .verdict = Verdict::unchecked};
    EXPECT_LT(detail::severity(ascending[5]), detail::severity(unchecked));  // the worst right one
    EXPECT_LT(detail::severity(unchecked), detail::severity(ascending[6]));  // the least wrong one
  }
  for (const Verdict verdict : {Verdict::undecidable, Verdict::kink})
    EXPECT_LT(detail::severity({.where = "element [1]", .relative_error = 1, .verdict = verdict}),
              detail::severity({.where = "element [1]", .relative_error = 1e-9}));
}

TEST(Gradcheck, ReportsProgressAndATable) {
  std::int64_t calls = 0, last = 0, all = 0;
  const GradcheckOptions options{.progress = [&](std::int64_t done, std::int64_t total) {
    ++calls;
    last = done;
    all = total;
  }};
  const Polynomial module{ones({3}, DType::f64), full({3}, 0.5, DType::f64)};
  const GradcheckResult result = gradcheck_module(
      module, [](const Polynomial& m) { return m(points()); }, options);
  EXPECT_EQ(calls, 7);
  EXPECT_EQ(last, 7);
  EXPECT_EQ(all, 7);
  const std::string table = result.table();
  EXPECT_EQ(std::ranges::count(table, '\n'), 4);
  EXPECT_THAT(table, HasSubstr("\nlinear "));
  EXPECT_THAT(table, HasSubstr("\nall together "));
  EXPECT_THAT(table, testing::EndsWith("  right\n"));
}

TEST(Gradcheck, TheTableHasTheWorstDerivativeOfEachInputInTheirOrder) {
  GradcheckResult result;
  result.checked = {{"w", "element [0]", 3, 3, 1e-9, 1e-12},
                    {"w", "element [1]", 1, 2, 1e-9, 0.5, Verdict::wrong},
                    {"b", "element [0]", 0.25, 0.25}};
  EXPECT_EQ(result.table(),
            "input checks    worst: analytic            numeric        +- rel.error  verdict\n"
            "w          2                  1                  2   1.0e-09   5.0e-01  wrong\n"
            "b          1               0.25               0.25   0.0e+00   0.0e+00  right\n");
}

TEST(Gradcheck, GroupsOfParametersAreCheckedTogether) {
  const auto f = [](auto x) { return x[0] * x[1] * x[2] * x[3]; };
  const std::vector<Tensor> x(4, points());
  const GradcheckResult result = gradcheck(f, x, {}, {"blocks.0.a.weight", "blocks.0.b", "blocks.1.a", "head.weight"});
  std::vector<std::string> together;
  for (const CheckedDerivative& c : result.checked)
    if (c.where == "random direction") together.push_back(c.input);
  EXPECT_THAT(together, testing::ElementsAre("blocks.0", "all together"));
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

TEST(Gradcheck, AcceptsRoundingErrorsInThePlaceOfZero) {
  Rng rng(3);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto f = [](auto x) { return sum(softmax(x[0], -1), -1); };
    const GradcheckResult result = gradcheck(f, {randn({4, 7}, rng, DType::f64)}, {.seed = seed});
    EXPECT_TRUE(result) << result.message;
  }
}

}  // namespace
}  // namespace braid::gradcheck_test
