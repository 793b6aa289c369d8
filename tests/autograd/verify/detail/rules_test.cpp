#include <braid/autograd/verify/detail/comparison.h>

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>

namespace braid::rules_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

constexpr auto kRules = GradcheckOptions::By::rules;

Tensor normal(const Shape& shape) {
  Rng rng(7);
  return randn(shape, rng, DType::f64);
}

TEST(CheckWithoutSteps, IsAsExactAsRounding) {
  const auto f = [](auto x) { return layer_norm(tanh(matmul(x[0], x[1])) * exp(x[0])); };
  const GradcheckResult result = gradcheck(f, {normal({4, 4}), normal({4, 4})}, {.by = kRules});
  EXPECT_TRUE(result);
  EXPECT_LE(result.worst, 1e-14);
  EXPECT_THAT(result.message,
              testing::StartsWith("gradcheck by rules: passed; the worst is all inputs, without steps: by vjps "));
}

TEST(CheckWithoutSteps, IsRightAtKinks) {
  const Tensor x = Tensor::of<double>({4}, {0, 1, 1, -1});
  EXPECT_TRUE(
      gradcheck([](auto x) { return max(x[0]) * relu(x[0]) + abs(x[0]) + clamp(x[0], -1, 1); }, {x}, {.by = kRules}));
}

// The variance cancels: 1 - cos(x)^2 - sin(x)^2 is 0, and its root has a gradient of rounding errors alone.
TEST(CheckWithoutSteps, TakesCancellationForRounding) {
  const auto f = [](auto x) { return (sin(x[0]) * sin(x[0]) + cos(x[0]) * cos(x[0]) - 1) * 1e6 + softmax(1e4 * x[0]); };
  const GradcheckResult result = gradcheck(f, {normal({5})}, {.by = kRules});
  EXPECT_TRUE(result) << result.message;
}

TEST(CheckWithoutSteps, FindsErrorsOf1e12) {
  const auto twice = [](double factor) {
    return [=](auto x) {
      const auto vjp = [=](const Tensor& dy) { return 2 * factor * dy; };
      const Var y =
          record("twice", Tensor(2 * x[0].value()), {x[0]}, vjp, [](const Applied& op) { return 2 * op.dy(); });
      return exp(y);
    };
  };
  EXPECT_TRUE(gradcheck(twice(1), {normal({3})}, {.by = kRules}));
  const GradcheckResult result = gradcheck(twice(1 + 1e-12), {normal({3})}, {.by = kRules});
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message, HasSubstr("all inputs, without steps: "));
}

TEST(CheckWithoutSteps, MissesALostGradientThatBothFinds) {
  const auto lost = [](auto x) { return x[0] * detach(x[0]); };
  EXPECT_TRUE(gradcheck(lost, {normal({3})}, {.by = kRules}));
  EXPECT_FALSE(gradcheck(lost, {normal({3})}, {.by = GradcheckOptions::By::both}));
}

TEST(CheckWithoutSteps, CannotCheckWhatIsNotFinite) {
  const Tensor x = Tensor::of<double>({2}, {1, 0});
  for (const GradcheckFunction& f :
       std::vector<GradcheckFunction>{[](auto x) { return log(x[0]); }, [](auto x) { return exp(log(-1 - x[0])); }}) {
    const GradcheckResult result = gradcheck(f, {x}, {.by = kRules});
    EXPECT_FALSE(result);
    EXPECT_EQ(result.unchecked, 1);
    EXPECT_EQ(result.worst, 0);
    EXPECT_EQ(result.wrong, 0);
    EXPECT_THAT(result.message,
                EndsWith("\nneither is finite, so nothing was compared; a CheckFinite scope finds the op"));
  }
  const auto one_sided = [](auto x) {
    return record(
        "twice", Tensor(2 * x[0].value()), {x[0]}, [](const Tensor& dy) { return Tensor(dy / 0.0); },
        [](const Applied& op) { return 2 * op.dy(); });
  };
  const GradcheckResult result = gradcheck(one_sided, {x}, {.by = kRules});
  EXPECT_EQ(result.wrong, 1);
  EXPECT_THAT(result.message, HasSubstr("\nfirst wrong vjp: op 'twice' (#1 of 1), input 0 [2], element "));
}

/// exp(x) in a dtype, whose vjp is `factor` times too large.
Var exp_in(DType dtype, const Var& x, double factor) {
  const Tensor y = Tensor(exp(x.value().to(dtype)));
  const auto vjp = [=](const Tensor& dy) { return Tensor(factor * dy * y); };
  return cast(record("exp_in", y, {cast(x, dtype)}, vjp, [](const Applied& op) { return op.dy() * op.y(); }),
              DType::f64);
}

TEST(CheckWithoutSteps, CannotCheckWhereRoundingHidesErrors) {
  for (const double factor : {1.0, 1.1}) {
    const auto plain = [=](auto x) { return exp_in(DType::bf16, x[0], factor); };
    const auto in_a_checkpoint = [=](auto x) {
      return checkpoint([=](const Var& x) { return exp_in(DType::bf16, x, factor); }, x[0]);
    };
    for (const GradcheckFunction& f : std::vector<GradcheckFunction>{plain, in_a_checkpoint}) {
      const GradcheckResult result = gradcheck(f, {normal({64})}, {.by = kRules});
      EXPECT_FALSE(result);
      EXPECT_EQ(result.unchecked, 1);
      EXPECT_EQ(result.worst, 0);
      EXPECT_THAT(result.message,
                  EndsWith("\nin f32 or bf16, rounding hides errors below the tolerance; compare in f64"));
    }
  }
}

TEST(CheckWithoutSteps, FindsErrorsBeyondTheRoundingOfF32) {
  const auto f = [](double factor) { return [=](auto x) { return exp_in(DType::f32, x[0], factor); }; };
  EXPECT_TRUE(gradcheck(f(1), {normal({64})}, {.by = kRules}));
  const GradcheckResult result = gradcheck(f(1.01), {normal({64})}, {.by = kRules});
  EXPECT_EQ(result.wrong, 1);
  EXPECT_THAT(result.message,
              EndsWith("\nnot every vjp can be compared to 1e-06, since op 'cast' (#1 of 3) returns f32"));
}

TEST(CheckWithoutSteps, TellsBothValuesAndTheirRelativeError) {
  const auto f = [](auto x) { return exp_in(DType::f64, x[0], 1.5); };
  const GradcheckResult result = gradcheck(f, {normal({64})}, {.blame = false, .by = kRules});
  double by_vjps = 0, by_rules = 0, error = 0, tolerance = 0;
  ASSERT_EQ(std::sscanf(result.message.c_str(),
                        "gradcheck by rules: all inputs, without steps: by vjps %lf, by rules %lf, relative error %lf, "
                        "tolerance %lf",
                        &by_vjps, &by_rules, &error, &tolerance),
            4);
  EXPECT_NEAR(by_vjps / by_rules, 1.5, 1e-6);
  EXPECT_NEAR(error, 1 / 3.0, 1e-3);
  EXPECT_LT(tolerance, 1e-10);
}

TEST(CheckWithoutSteps, DoesNotCallAVjpRightThatItsRuleContradicts) {
  const auto f = [](auto x) {
    return exp(record(
        "twice", Tensor(2 * x[0].value()), {x[0]}, [](const Tensor& dy) { return (2 + 1e-8) * dy; },
        [](const Applied& op) { return 2 * op.dy(); }));
  };
  EXPECT_THAT(gradcheck(f, {normal({3})}, {.by = kRules}).message,
              AllOf(HasSubstr("\nfirst rule that differs from its vjp: op 'twice' (#1 of 2), input 0 [3]: along a "
                              "random direction its rule gives "),
                    EndsWith("\nno vjp is seen to be wrong by more than 1e-06 along random directions")));
}

TEST(CheckWithoutSteps, NamesAWrongVjpLast) {
  const auto f = [](auto x) {
    return exp(record(
        "twice", Tensor(2 * x[0].value()), {x[0]}, [](const Tensor& dy) { return 3 * dy; },
        [](const Applied& op) { return 2 * op.dy(); }));
  };
  EXPECT_THAT(gradcheck(f, {normal({3})}, {.by = kRules}).message,
              HasSubstr("\nfirst wrong vjp: op 'twice' (#1 of 2), input 0 [3], element [0]: analytic "));
  EXPECT_THAT(gradcheck(f, {normal({3})}, {.blame = false, .by = kRules}).message, testing::Not(HasSubstr("op '")));
}

}  // namespace
}  // namespace braid::rules_test
