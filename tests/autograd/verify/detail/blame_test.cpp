#include <braid/autograd/verify/detail/blame.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/map.h>
#include <braid/core/random.h>

namespace braid::blame_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// `2 x` with a vjp that is `factor` times too large.
Var twice(const Var& x, double factor = 1) {
  return record("twice",
                map(
                    "twice", [](auto v) { return 2 * v; }, x.value()),
                {x}, [factor](const Tensor& dy) { return factor * 2 * dy; });
}

/// a b and a + b, as one op. The vjp of the element `wrong` of b is off.
std::vector<Var> product_and_sum(const Var& a, const Var& b, std::int64_t wrong) {
  const auto vjp = [a = a.value(), b = b.value(), wrong](std::span<Tensor> dys, const Needs&) {
    const auto or_zero = [&](const Tensor& dy) { return dy.defined() ? dy : zeros(a.shape(), a.dtype()); };
    const Tensor dp = or_zero(dys[0]), ds = or_zero(dys[1]);
    Tensor db = Tensor(dp * a + ds).clone();
    db.mutable_data<double>()[wrong] += 1;
    return std::vector<Tensor>{Tensor(dp * b + ds), db};
  };
  return record("product_and_sum", {Tensor(a.value() * b.value()), Tensor(a.value() + b.value())}, std::vector{a, b},
                vjp);
}

/// An op whose forward pass was computed with variables: y = f(x), of which the vjp is `factor` times dy y'.
Var computed_with(const Var& x, const Var& y, const Var& slope, double factor = 1) {
  return record("by_variables", y.value(), {x},
                [slope = slope.value(), factor](const Tensor& dy) { return factor * dy * slope; });
}

struct Scaled {
  Var weight;
  Var operator()(const Var& x) const { return twice(weight * x, -1); }
  void params(auto&& visit) { visit("weight", weight); }
};

Tensor normal(const Shape& shape) {
  Rng rng(7);
  return randn(shape, rng, DType::f64);
}

std::string last_line(const GradcheckResult& result) {
  EXPECT_FALSE(result);
  return result.message.substr(result.message.rfind('\n') + 1);
}

TEST(Blame, NamesTheOpTheInputAndTheElement) {
  const auto f = [](auto x) { return tanh(product_and_sum(exp(x[0]), sigmoid(x[1]), 4)[0] * 3.0); };
  EXPECT_THAT(last_line(gradcheck(f, {normal({2, 3}), normal({2, 3})})),
              testing::StartsWith("first wrong vjp: op 'product_and_sum' (#3 of 5), input 1 [2, 3], element [1, 1]: "
                                  "analytic "));
}

TEST(Blame, TellsBothValuesOfTheElement) {
  const auto f = [](auto x) { return sum(twice(x[0], 1.5)); };
  const std::string line = last_line(gradcheck(f, {ones({1}, DType::f64)}, {.seed = 3}));
  double analytic = 0, numeric = 0;
  ASSERT_EQ(std::sscanf(line.c_str(),
                        "first wrong vjp: op 'twice' (#1 of 2), input 0 [1], element [0]: analytic %lf, numeric %lf",
                        &analytic, &numeric),
            2);
  EXPECT_NEAR(analytic / numeric, 1.5, 1e-6);
}

TEST(Blame, PassesOverOpsOfF32AndBf16) {
  const auto line = [](DType dtype) {
    const auto f = [=](auto x) { return concat({twice(x[0], 2), cast(cast(x[1], dtype) * 2.0, DType::f64)}, 0); };
    return last_line(gradcheck(f, {normal({3}), normal({3})}));
  };
  EXPECT_THAT(line(DType::f32), HasSubstr("op 'twice' (#1 of 5), input 0 [3]"));
  EXPECT_EQ(line(DType::bf16), "not every vjp can be compared to 1e-06, since op 'cast' (#2 of 5) returns bf16");
}

TEST(Blame, FindsAVjpWithoutACotangent) {
  const auto f = [](auto x) {
    const auto vjp = [a = x[1].value()](const Tensor& dy) { return std::vector<Tensor>{Tensor(), dy}; };
    const Var h = exp(x[0]);
    return sum(record("total", Tensor(h.value() + x[1].value()), {h, x[1]}, vjp));
  };
  EXPECT_EQ(last_line(gradcheck(f, {normal({3}), normal({3})})),
            "first wrong vjp: op 'total' (#2 of 3), input 0 [3]: its vjp returned no cotangent");
}

TEST(Blame, PassesOverConstantInputs) {
  const auto f = [](auto x) {
    return record("sum", Tensor(x[0].value() + 1.0), {ones({3}, DType::f64), x[0]}, [](const Tensor& dy) {
      return std::vector<Tensor>{Tensor(), Tensor(2 * dy)};
    });
  };
  EXPECT_THAT(last_line(gradcheck(f, {normal({3})})), HasSubstr("op 'sum' (#1 of 1), input 1 [3], element ["));
}

TEST(Blame, TheWrongOpNearestToTheOutputComesFirst) {
  const auto f = [](auto x) { return twice(tanh(twice(exp(twice(x[0], 3)), 2))); };
  EXPECT_THAT(last_line(gradcheck(f, {normal({3})})), HasSubstr("op 'twice' (#3 of 5)"));
}

TEST(Blame, OneOfManyElementsInALongChain) {
  const auto f = [](auto x) {
    Var y = x[0];
    for (int i = 0; i < 40; ++i) y = i == 23 ? product_and_sum(y, tanh(y), 777)[1] : sigmoid(y) + x[1];
    return y;
  };
  EXPECT_THAT(last_line(gradcheck(f, {normal({40, 25}), normal({25})}, {.directions = 2})),
              HasSubstr("op 'product_and_sum' (#48 of 80), input 1 [40, 25], element [31, 2]: "));
}

TEST(Blame, LooksIntoCheckpoints) {
  const auto f = [](auto x) { return checkpoint([](const Var& a) { return sum(twice(exp(a), 0.5)); }, x[0]) * 2.0; };
  EXPECT_THAT(last_line(gradcheck(f, {normal({4})})), HasSubstr("op 'twice' (#2 of 4), input 0 [4], element ["));
}

TEST(Blame, AnInputThatComesTwiceIsOne) {
  const auto square = [](const Var& x) {
    return record("square", Tensor(x.value() * x.value()), {x, x}, [x = x.value()](const Tensor& dy) {
      return std::vector<Tensor>{Tensor(dy * x), Tensor(2 * dy * x)};
    });
  };
  const auto f = [&](auto x) { return square(tanh(x[0])); };
  EXPECT_THAT(last_line(gradcheck(f, {normal({4})})), HasSubstr("op 'square' (#2 of 2), input 0 [4], element [0]"));
}

TEST(Blame, FindsWhereAGradientIsLost) {
  const auto f = [](auto x) { return tanh(x[0] * detach(exp(x[1]))) + x[1]; };
  EXPECT_EQ(last_line(gradcheck(f, {normal({3}), normal({3})})),
            "no vjp is wrong: a gradient is lost at op 'mul' (#2 of 4), whose input 1 [3] is a constant but depends on "
            "variables");
}

TEST(Blame, FindsAnOpThatUsesMoreThanItsInputs) {
  const auto f = [](auto x) {
    const Var hidden = exp(x[1]);
    return record("scale", Tensor(x[0].value() * hidden.value()), {x[0]},
                  [h = hidden.value()](const Tensor& dy) { return Tensor(dy * h); }) +
           hidden;
  };
  EXPECT_EQ(last_line(gradcheck(f, {normal({3}), normal({3})})),
            "first wrong vjp: op 'scale' (#2 of 3): its outputs depend on variables that are not among its inputs");
}

TEST(Blame, DoesNotAccuseOpsThatComputeWithVariables) {
  const auto on_its_own = [](auto x) {
    const Var h = twice(x[0], 1.5), y = exp(h) * 2.0;
    return computed_with(h, y, y);
  };
  const auto detached = [](auto x) {
    const Var h = twice(x[0], 1.5), y = detach(exp(h) * 2.0);
    return computed_with(h, y, y);
  };
  const auto shared = [](auto x) {
    const Var h = twice(x[0], 1.5), e = exp(h), y = e * 2.0;
    return computed_with(h, y, y) + e;
  };
  const auto by_value = [](auto x) {
    const Var h = twice(x[0], 1.5), e = exp(h), y = e.value() * 2.0;
    return computed_with(h, y, y) + e;
  };
  const auto twofold = [](auto x) {
    const Var h = twice(x[0], 1.5), e = exp(h), m = computed_with(h, e, e), y = tanh(m);
    return computed_with(m, y, 1 - y * y);
  };
  const auto composed = [](auto x) {
    const Var h = twice(x[0], 1.5), a = exp(h), b = exp(-h), y = (a - b) / (a + b);
    return computed_with(h, y, 1 - y * y);
  };
  for (const GradcheckFunction& f :
       std::vector<GradcheckFunction>{on_its_own, detached, shared, by_value, twofold, composed})
    EXPECT_THAT(last_line(gradcheck(f, {normal({3})})), HasSubstr("op 'twice' (#1 of "));
}

TEST(Blame, AccusesWrongOpsThatComputeWithVariables) {
  const auto f = [](auto x) {
    const Var h = tanh(x[0]), e = exp(h), y = e * 2.0;
    return computed_with(h, y, y, 0.5) + e;
  };
  EXPECT_THAT(last_line(gradcheck(f, {normal({3})})),
              HasSubstr("op 'by_variables' (#4 of 5), input 0 [3], element [0]"));
}

TEST(Blame, AnOutputThatIsNotOnTheTape) {
  const auto f = [](auto x) -> Var { return exp(x[0]).value(); };
  EXPECT_EQ(last_line(gradcheck(f, {normal({3})})), "no vjp is wrong: the output of f is not on the tape");
}

TEST(Blame, WorksOnModulesByName) {
  const Tensor x = normal({2, 3});
  const GradcheckResult result =
      gradcheck_module(Scaled{normal({3})}, [&](const Scaled& m) { return sum(tanh(m(x))); });
  EXPECT_THAT(result.message, testing::StartsWith("gradcheck: weight, element ["));
  EXPECT_THAT(last_line(result),
              HasSubstr("op 'twice' (#2 of 4) after one with weight, input 0 [2, 3], element [0, 0]: "));
  const auto of_the_weight = [&](const Scaled& m) { return sum(tanh(twice(m.weight, 3) * x)); };
  EXPECT_THAT(last_line(gradcheck_module(Scaled{normal({3})}, of_the_weight)),
              HasSubstr("op 'twice' (#1 of 4) with weight, input 0 [3], element ["));
}

TEST(Blame, GivesUpWhenTheOpsDependOnValues) {
  const auto f = [](auto x) {
    const Var y = twice(x[0], 2);
    return y.value().data<double>()[0] == 2 ? exp(y) : sin(y) * x[1];
  };
  EXPECT_EQ(last_line(gradcheck(f, {ones({1}, DType::f64), ones({1}, DType::f64)})),
            "no vjp can be blamed: f records other ops when its values change, first 'sin' (#2)");
}

TEST(Blame, IsSilentWhenItIsNotWanted) {
  const GradcheckResult result = gradcheck([](auto x) { return twice(x[0], 2); }, {normal({3})}, {.blame = false});
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message, testing::Not(HasSubstr("vjp")));
}

TEST(Blame, HasTheToleranceOfTheCheck) {
  const auto f = [](auto x) { return sum(tanh(twice(x[0], 1 + 1e-7))); };
  EXPECT_TRUE(gradcheck(f, {normal({3})}));
  EXPECT_THAT(last_line(gradcheck(f, {normal({3})}, {.tolerance = 1e-8})), HasSubstr("op 'twice' (#1 of "));
}

}  // namespace
}  // namespace braid::blame_test
