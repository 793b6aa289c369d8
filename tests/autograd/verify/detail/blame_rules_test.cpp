#include <braid/autograd/verify/detail/blame.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/draw.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>

namespace braid::blame_rules_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// x^2 with a rule.
template <class R>
Var square(const Var& x, R rule) {
  return record(
      "square", Tensor(x.value() * x.value()), {x}, [x = x.value()](const Tensor& dy) { return Tensor(2 * dy * x); },
      rule);
}
Var wrong_value(const Var& x) {
  return square(x, [](const Applied& op) { return 3 * op.dy() * op.x(); });
}
Var wrong_derivative(const Var& x) {
  return square(x, [](const Applied& op) { return 2 * op.dy() * detach(op.x()); });
}
Var right(const Var& x) {
  return square(x, [](const Applied& op) { return 2 * op.dy() * op.x(); });
}

detail::Blame blame(const GradcheckFunction& f) {
  Rng rng(7);
  const GradcheckOptions options;
  return detail::blame_rules(f, {f, {randn({2, 3}, rng, DType::f64), randn({3}, rng, DType::f64)}, {}, options});
}
std::string blamed(const GradcheckFunction& f) { return blame(f).sentence; }

TEST(BlameRules, NamesTheOpAsBlameCountsIt) {
  EXPECT_THAT(blamed([](auto x) { return exp(wrong_value(tanh(x[0]) * x[1])); }),
              StartsWith("first rule that differs from its vjp: op 'square' (#3 of 4), input 0 [2, 3]: along a random "
                         "direction its rule gives "));
}

TEST(BlameRules, NamesAnOpWhoseRuleTakesAVariableForAConstant) {
  EXPECT_THAT(blamed([](auto x) { return exp(wrong_derivative(tanh(x[0]) * x[1])); }),
              StartsWith("first rule that differs from its vjp: op 'square' (#3 of 4): its rule has the derivative "));
  EXPECT_THAT(blamed([](auto x) { return wrong_derivative(x[0]); }),
              testing::EndsWith("; does it take a captured tensor for op.x()?"));
}

TEST(BlameRules, NamesTheInputOfSeveral) {
  const auto scaled = [](const Tensor& s, const Var& a, const Var& b) {
    return record(
        "scaled", Tensor(s * a.value() * b.value()), {s, a, b},
        [=, a = a.value(), b = b.value()](const Tensor& dy) {
          return std::vector<Tensor>{Tensor(), Tensor(s * dy * b), Tensor(s * dy * a)};
        },
        [=](const Applied& op) {
          return std::vector{Var(), s * op.dy() * op.x(2), 2 * s * op.dy() * op.x(1)};
        });
  };
  EXPECT_THAT(blamed([&](auto x) { return scaled(scalar(3, DType::f64), x[1], exp(x[1])); }),
              HasSubstr("op 'scaled' (#2 of 2), input 2 [3]: along a random direction its rule gives "));
}

TEST(BlameRules, NamesTheOneNearestToTheOutput) {
  EXPECT_THAT(blamed([](auto x) { return right(wrong_derivative(sin(wrong_value(x[0])))) + x[1]; }),
              HasSubstr("op 'square' (#3 of 5)"));
}

TEST(BlameRules, IsAskedWhereALossDifferentiatesAndNoVjpIsWrong) {
  const auto f = [](auto x) {
    return sum(pow(grad([](const Var& at) { return sum(wrong_value(sin(at))); })(x[0]), 2));
  };
  Rng rng(8);
  const HigherOrder scope;
  const GradcheckResult result = gradcheck(f, {randn({3}, rng, DType::f64)});
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message, HasSubstr("\nfirst rule that differs from its vjp: op 'square' (#3 of 9)"));
  EXPECT_TRUE(result.wrong_op.has_value());
}

TEST(BlameRules, TellsWhereAGradientIsLost) {
  EXPECT_EQ(blamed([](auto x) { return x[0] + exp(x[1]) * detach(x[1]); }),
            "no rule is wrong: a derivative is lost at op 'mul' (#2 of 3), whose input 1 [3] is a constant but depends "
            "on variables");
}

TEST(BlameRules, CountsOnTheTapeThatUsersDraw) {
  const auto after_a_fused_op = [](auto x) { return exp(wrong_value(layer_norm(x[0]))); };
  const detail::Blame blame = blame_rules_test::blame(after_a_fused_op);
  EXPECT_THAT(blame.sentence,
              HasSubstr("op 'square' (#2 of 3), input 0 [2, 3]: along a random direction its rule gives "));
  Tape tape;
  after_a_fused_op(std::vector{tape.watch(ones({3}, DType::f64)), tape.watch(ones({3}, DType::f64))});
  EXPECT_THAT(draw(tape).dot({.wrong = blame.op}),
              HasSubstr("[label=\"square\\n[3] f64\\n24 B\", tooltip=\"[3] f64\", fillcolor=red]"));
}

TEST(BlameRules, FindsNoOpToDrawInsideOfOthers) {
  const auto in_a_checkpoint = [](auto x) { return checkpoint(wrong_value, checkpoint(right, exp(x[0]))); };
  const detail::Blame blame = blame_rules_test::blame(in_a_checkpoint);
  EXPECT_THAT(
      blame.sentence,
      HasSubstr(
          "op 'square' (#3 of 3) in a HigherOrder scope, input 0 [2, 3]: along a random direction its rule gives "));
  EXPECT_EQ(blame.op, std::nullopt);
}

TEST(BlameRules, DoesNotAccuseOpsWithoutAFiniteDerivative) {
  EXPECT_THAT(blamed([](auto x) {
                const Var y = wrong_value(x[0]);
                exp(log(-abs(x[1])));  // nan, and so is its derivative either way
                return y;
              }),
              HasSubstr("op 'square' (#1 of 5)"));
}

TEST(BlameRules, DoesNotAccuseARightRuleAtAKink) {
  const GradcheckFunction f = [](auto x) {
    const Tensor positive = relu(x[0].value());
    return record(
        "half_square", Tensor(positive * positive / 2), {x[0]}, [=](const Tensor& dy) { return Tensor(dy * positive); },
        [](const Applied& op) { return op.dy() * relu(op.x()); });
  };
  const GradcheckOptions options;
  EXPECT_THAT(detail::blame_rules(f, {f, {zeros({1}, DType::f64)}, {}, options}).sentence,
              StartsWith("no rule is wrong: all that can be compared agree"));
}

TEST(BlameRules, AccusesNoneWhereOtherOpsAreRecorded) {
  EXPECT_EQ(blamed([calls = 0](auto x) mutable {
              const Var y = right(x[0]);
              return calls++ < 2 ? y : exp(y);
            }),
            "no rule can be blamed: f records other ops when its values change, first 'exp' (#2)");
}

TEST(BlameRules, FindsSmallErrorsInDerivativesWhoseTermsCancel) {
  const GradcheckFunction f = [](auto x) {
    return square(x[0], [](const Applied& op) {
      const Var dx = 2 * op.dy() * op.x();
      return dx + 1e-5 * (dx - detach(dx));
    });
  };
  const Tensor x = Tensor::of<double>({3}, {1, -2, 3});
  for (std::uint64_t seed = 0; seed < 100; ++seed) {  // they do along some of the directions
    const GradcheckOptions options{.seed = seed};
    EXPECT_THAT(detail::blame_rules(f, {f, {x}, {}, options}).sentence, HasSubstr("its rule has the derivative "))
        << seed;
  }
}

TEST(BlameRules, SaysThatAllAreRight) {
  EXPECT_EQ(blamed([](auto x) {
              return relu(right(x[0])) + split(max(x[0], {0}) * x[1], 0, {1, 2})[1][0];
            }),
            "no rule is wrong: all that can be compared agree with their vjps along random directions");
}

TEST(BlameRules, HasTheLastWordOfGradcheckOfSecondOrder) {
  Rng rng(7);
  const GradcheckResult result =
      gradcheck([](auto x) { return exp(wrong_derivative(x[0])); }, {randn({3}, rng, DType::f64)}, {.order = 2});
  EXPECT_THAT(result.message, HasSubstr("\nfirst rule that differs from its vjp: op 'square' (#1 of 2)"));
}

}  // namespace
}  // namespace braid::blame_rules_test
