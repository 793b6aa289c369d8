#include <braid/autograd/derivatives.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/ops.h>
#include <braid/core/random.h>
#include <tests/support.h>

namespace braid::derivatives_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

const auto cube = [](const Var& x) { return x * x * x; };

Tensor numbers(std::initializer_list<double> values) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values);
}
double item(const Var& x) { return x.value().item(); }
Var cubes(const Var& x) { return sum(x * x * x); }

struct Affine {
  Var weight, bias;
  Var operator()(const Var& x) const { return tanh(x * weight + bias); }
  void params(auto&& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

TEST(Grad, NestsToAnyOrder) {
  const Tensor x = scalar(2, DType::f64);
  EXPECT_EQ(item(grad(cube)(x)), 12);
  EXPECT_EQ(item(grad(grad(cube))(x)), 12);
  EXPECT_EQ(item(grad(grad(grad(cube)))(x)), 6);
  EXPECT_EQ(item(grad(grad(grad(grad(cube))))(x)), 0);
  const auto sine = [](const Var& x) { return sin(x); };
  EXPECT_NEAR(item(grad(grad(grad(grad(grad(sine)))))(x)), std::cos(2), 1e-15);
}

TEST(Grad, ComesInTheTypeOfItsArgument) {
  const Affine module{numbers({2, 3}), numbers({5, 7})};
  const Affine g =
      grad([](const Affine& m, const Tensor& x) { return sum(m.weight * m.weight * x); })(module, numbers({1, 10}));
  EXPECT_THAT(g.weight.value().to_vector<double>(), ElementsAre(4, 60));
  EXPECT_THAT(g.bias.value().to_vector<double>(), ElementsAre(0, 0));
  const std::vector<Var> both =
      grad([](const std::vector<Var>& v) { return sum(v[0] * v[1]); })(std::vector<Var>{numbers({2}), numbers({3})});
  EXPECT_EQ(item(both[0]), 3);
  EXPECT_EQ(item(both[1]), 2);
}

TEST(Grad, InsideALossIsPartOfItsGradient) {
  const HigherOrder scope;
  const auto loss = [](const Var& x) {
    const Var g = grad(cubes)(x);  // 3 x^2
    return sum(x) + sum(g * g);
  };
  const auto [value, g] = value_and_grad(loss)(Var(numbers({1, 2})));
  EXPECT_EQ(value, 3 + 9 + 144);
  EXPECT_THAT(g.value().to_vector<double>(), ElementsAre(37, 289));  // 1 + 36 x^3
}

TEST(Grad, TakesVariablesThatItsFunctionCaptures) {
  const HigherOrder scope;
  const auto penalty = [](const Affine& m, const Tensor& x) {
    const Var slope = grad([&](const Var& x) { return sum(m(x)); })(x);
    return sum(slope * slope);
  };
  const auto direct = [](const Affine& m, const Tensor& x) {
    const Var y = m(x), slope = (1.0 - y * y) * m.weight;
    return sum(slope * slope);
  };
  const Affine module{numbers({.2, .3}), numbers({.5, -.7})};
  const auto [value, g] = value_and_grad(penalty)(module, numbers({1, 2}));
  const auto [expected, h] = value_and_grad(direct)(module, numbers({1, 2}));
  EXPECT_NEAR(value, expected, 1e-15);
  EXPECT_THAT(g.weight.value().to_vector<double>(), Pointwise(DoubleNear(1e-15), h.weight.value().to_vector<double>()));
  EXPECT_THAT(g.bias.value().to_vector<double>(), Pointwise(DoubleNear(1e-15), h.bias.value().to_vector<double>()));
}

TEST(Grad, DoesNotMixUpVariablesOfNestedFunctions) {
  // d/dx (x * d/dy (x + y)) = 1: the inner derivative must not count x.
  const HigherOrder scope;
  const auto outer = [](const Var& x) { return x * grad([&](const Var& y) { return x + y; })(x); };
  EXPECT_EQ(item(grad(outer)(scalar(3, DType::f64))), 1);
}

TEST(Grad, IsAConstantWhereNothingFromOutsideIsInvolved) {
  const HigherOrder scope;
  Tape tape;
  const Var x = tape.watch(numbers({1, 2}));
  EXPECT_FALSE(grad(cubes)(numbers({1, 2})).requires_grad());
  EXPECT_TRUE(grad(cubes)(x).requires_grad());
  tape.backward(sum(x));
}

TEST(Jvp, IsTheProductWithTheJacobian) {
  const auto f = [](const Var& x) { return concat(std::vector<Var>{x * x, expand_dims(sum(exp(x)), 0)}, 0); };
  const auto [y, dy] = jvp(f, numbers({1, 2}), numbers({10, 100}));
  EXPECT_THAT(y.value().to_vector<double>(), ElementsAre(1, 4, std::exp(1) + std::exp(2)));
  EXPECT_THAT(dy.value().to_vector<double>(),
              Pointwise(DoubleNear(1e-12), std::vector{20., 400., 10 * std::exp(1) + 100 * std::exp(2)}));
}

TEST(Hvp, IsTheProductWithTheHessian) {
  const Affine module{numbers({.2, .3}), numbers({.5, -.7})}, v{numbers({1, 2}), numbers({3, 4})};
  const auto loss = [](const Affine& m, const Tensor& x) { return sum(m(x)); };
  const Tensor x = numbers({1, 2});
  const Affine h = hvp(loss, module, v, x);
  const auto gradient_at = [&](double t) {
    return value_and_grad(loss)(Affine{module.weight + t * v.weight, module.bias + t * v.bias}, x).second;
  };
  const Tensor numeric = (gradient_at(1e-6).weight - gradient_at(-1e-6).weight) / 2e-6;
  EXPECT_THAT(h.weight.value().to_vector<double>(), Pointwise(DoubleNear(1e-8), numeric.to_vector<double>()));
}

TEST(Jacobian, HasTheAxesOfBoth) {
  const Tensor matrix = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto product = [&](const Var& x) { return matmul(matrix, x); };
  const Tensor tall = jacobian(product, ones({3, 4}, DType::f64)), flat = jacobian(product, ones({3, 1}, DType::f64));
  EXPECT_EQ(tall.shape(), (Shape{2, 4, 3, 4}));
  EXPECT_EQ(flat.shape(), (Shape{2, 1, 3, 1}));
  EXPECT_THAT(flat.to_vector<double>(), ElementsAre(1, 2, 3, 4, 5, 6));
  const auto wide = [](const Var& x) { return broadcast_to(x * x, {3, 2}); };  // fewer inputs: by columns
  EXPECT_THAT(jacobian(wide, numbers({1, 2})).to_vector<double>(), ElementsAre(2, 0, 0, 4, 2, 0, 0, 4, 2, 0, 0, 4));
  EXPECT_EQ(jacobian(cubes, zeros({0}, DType::f64)).shape(), (Shape{0}));
}

TEST(Hessian, IsTheMatrixOfSecondDerivatives) {
  const auto f = [](const Var& x) { return x[0] * x[0] * x[1] + sin(x[1]); };
  EXPECT_THAT(hessian(f, numbers({3, 2})).to_vector<double>(),
              Pointwise(DoubleNear(1e-14), std::vector{4., 6., 6., -std::sin(2)}));
}

TEST(HigherOrder, RunsCheckpointsPlainly) {
  const auto inner = [](const Var& x) { return exp(x) * x; };
  const auto f = [&](const Var& x) { return sum(checkpoint(inner, x)); };
  const Tensor x = numbers({.3, -.4});
  EXPECT_EQ(hvp(f, x, numbers({1, 2})).value().to_vector<double>(),
            hvp([&](const Var& x) { return sum(inner(x)); }, x, numbers({1, 2})).value().to_vector<double>());
}

TEST(HigherOrder, KeepsTheMaskOfDropout) {
  const auto dropped = [](const Var& x) {
    Rng rng(3);
    return dropout(x, 0.5, rng);
  };
  const auto f = [&](const Var& x) { return sum(pow(dropped(x), 3)); };
  const Tensor x = numbers({1, 1, 1, 1, 1, 1, 1, 1});
  const std::vector<double> mask = dropped(x).to_vector<double>();
  const std::vector<double> h = hvp(f, x, x).value().to_vector<double>();
  for (std::size_t i = 0; i < h.size(); ++i) EXPECT_EQ(h[i], mask[i] == 0 ? 0 : 6 * 8);
}

/// An op of a user's, which computes x^2.
Var plain_square(const Var& x) {
  return record("plain_square", x.value() * x.value(), {x}, [x = x.value()](const Tensor& dy) { return 2 * dy * x; });
}
Var ruled_square(const Var& x) {
  return record(
      "ruled_square", x.value() * x.value(), {x}, [x = x.value()](const Tensor& dy) { return 2 * dy * x; },
      [](const Applied& op) { return 2 * op.dy() * op.x(); });
}

TEST(HigherOrder, DifferentiatesOpsWithARule) {
  EXPECT_EQ(item(grad(grad(ruled_square))(scalar(3, DType::f64))), 2);
  EXPECT_EQ(item(grad(plain_square)(scalar(3, DType::f64))), 6);
  EXPECT_THAT(message_of([] { grad(grad(plain_square))(scalar(3, DType::f64)); }),
              HasSubstr("plain_square: this op has no rule for derivatives of higher order; pass one to record()"));
}

TEST(HigherOrder, GivesNoGradientToWhatWasNotChosen) {
  const Tensor x = numbers({-1, 4});
  const std::pair<const char*, std::function<Var(const Var&)>> choices[] = {
      {"maximum", [](const Var& x) { return sum(sqrt(maximum(x, 0.0))); }},
      {"max", [](const Var& x) { return sqrt(max(clamp(x, -1, 0))); }},
      {"abs", [](const Var& x) { return sum(sqrt(abs(x + 1.0))); }}};
  for (const auto& [name, f] : choices) {
    const Var h = hvp(f, x, numbers({1, 1}));
    EXPECT_EQ(h.value().to_vector<double>()[0], 0) << name;
  }
}

TEST(HigherOrder, EndsWithWhatStartedIt) {
  Var kept;
  const auto keeps = [&](const Var& x) { return sum((kept = x * x) * x); };
  hvp(keeps, numbers({1, 2}), numbers({1, 1}));
  EXPECT_FALSE(detail::Differentiation::nested());
}

TEST(HigherOrder, StaysWithTheTapesThatWereStartedInItsScope) {
  Tape tape = [] {
    const HigherOrder scope;
    return Tape();
  }();
  const Var x = tape.watch(numbers({1, 2})), slope = grad(cubes)(x);
  tape.backward(sum(slope));
  EXPECT_THAT(tape.gradient(x).to_vector<double>(), ElementsAre(6, 12));
}

TEST(Jacobian, HasTheDtypeOfTheResult) {
  const auto widened = [](const Var& x) { return cast(x * x, DType::f64); };
  const Tensor j = jacobian(widened, Var(Tensor::of<float>({2}, {1, 2})));
  EXPECT_THAT(j.to_vector<double>(), ElementsAre(2, 0, 0, 4));
}

TEST(Jacobian, NeedsNoRulesForAsManyRowsAsColumns) {
  EXPECT_THAT(jacobian(plain_square, numbers({1, 2})).to_vector<double>(), ElementsAre(2, 0, 0, 4));
}

// What would cut off a gradient throws, and says what to write instead.

TEST(NeverSilent, GradOfAVariableOnATapeOfFirstOrder) {
  const auto loss = [](const Var& x) {
    const Var g = grad(cubes)(x);
    return sum(x) + sum(g * g);
  };
  EXPECT_THAT(message_of([&] {
                value_and_grad(loss)(Var(numbers({1, 2})));
              }),
              AllOf(HasSubstr("grad: x [2] is on a tape, and the gradient of"), HasSubstr("HigherOrder scope")));
  EXPECT_THAT(message_of([&] {
                value_and_grad([](const Var& x) { return item(jvp(cubes, x, x).second) * sum(x); })(Var(numbers({1})));
              }),
              HasSubstr("jvp: x [1] is on a tape of first order"));
}

TEST(NeverSilent, NestedValueAndGradAndVjp) {
  const auto nested = [](const Var& x) { return sum(value_and_grad(cubes)(x).second); };
  EXPECT_THAT(message_of([&] {
                value_and_grad(nested)(Var(numbers({1, 2})));
              }),
              HasSubstr("value_and_grad: x [2] is on a tape, and the gradient of the result would get lost: write "
                        "grad(), jvp() or hvp() in a HigherOrder scope"));
  const auto pulled = [](const Var& x) { return sum(Var(vjp(cubes, scalar(1, DType::f64), x)[0])); };
  EXPECT_THAT(message_of([&] { value_and_grad(pulled)(Var(numbers({1, 2}))); }), HasSubstr("vjp: x [2] is on a tape"));
}

TEST(NeverSilent, CapturedVariables) {
  const auto captures = [](const Var& w) {
    return sum(grad([&](const Var& x) { return sum(w * x * x); })(numbers({1, 2})));
  };
  EXPECT_THAT(message_of([&] {
                value_and_grad(captures)(Var(numbers({1, 2})));
              }),
              AllOf(HasSubstr("inputs are on different tapes"), HasSubstr("const HigherOrder scope;")));
  const auto in_checkpoint = [](const Var& w) {
    return sum(checkpoint([&](const Var& x) { return x * w; }, Var(numbers({1, 2}))));
  };
  EXPECT_THAT(message_of([&] {
                value_and_grad(in_checkpoint)(Var(numbers({1, 2})));
              }),
              HasSubstr("checkpoint: the function captures a variable that is on a tape"));
}

TEST(NeverSilent, DirectionsOnATapeOfFirstOrder) {
  const auto moved = [](const Var& v) { return sum(v) + sum(jvp(cubes, numbers({1, 2}), v).second); };
  EXPECT_THAT(message_of([&] {
                value_and_grad(moved)(Var(numbers({3, 4})));
              }),
              HasSubstr("jvp: the direction [2] is on another tape, where the gradient of the result would get lost"));
  const auto curved = [](const Var& v) { return sum(v) + sum(hvp(cubes, numbers({1, 2}), v)); };
  EXPECT_THAT(message_of([&] { value_and_grad(curved)(Var(numbers({3, 4}))); }), HasSubstr("hvp: the direction [2]"));
  const HigherOrder scope;
  EXPECT_THAT(value_and_grad(moved)(Var(numbers({3, 4}))).second.value().to_vector<double>(), ElementsAre(4, 13));
  EXPECT_THAT(value_and_grad(curved)(Var(numbers({3, 4}))).second.value().to_vector<double>(), ElementsAre(7, 13));
}

TEST(NeverSilent, VariablesOfOlderTapes) {
  const HigherOrder scope;
  Tape older, newest;
  const Var x = older.watch(numbers({1, 2}));
  EXPECT_THAT(message_of([&] { grad(cubes)(x); }), HasSubstr("grad: x [2] is on another tape than the newest one"));
  const auto captured = [&](const Var&) { return x; };
  EXPECT_THAT(message_of([&] {
                jvp(captured, numbers({1, 2}), numbers({1, 1}));
              }),
              HasSubstr("jvp: f returned a variable that is on another tape"));
}

TEST(NeverSilent, ResultsBesideALossThatAreOnAnotherTape) {
  const auto nested = [](const Var& w) {
    const auto inner = [&](const Var& x) { return std::pair(sum(x * x), sum(w * w)); };
    return std::get<2>(value_and_grad(inner)(Var(numbers({5}))));
  };
  EXPECT_THAT(value_and_grad(nested)(Var(numbers({1, 2}))).second.value().to_vector<double>(), ElementsAre(2, 4));
}

TEST(NeverSilent, LossesThatDoNotDependOnTheModel) {
  EXPECT_THAT(message_of([] { value_and_grad([](const Var&) { return Var(scalar(1)); })(Var(scalar(2))); }),
              HasSubstr("the loss does not depend on the parameters"));
}

TEST(NeverSilent, JacobiansOfVariables) {
  const HigherOrder scope;
  const auto loss = [](const Var& x) { return sum(Var(jacobian(cubes, x))); };
  EXPECT_THAT(message_of([&] { value_and_grad(loss)(Var(numbers({1, 2}))); }), HasSubstr("on a tape"));
}

TEST(Derivatives, RefuseWhatDoesNotFit) {
  const auto identity = [](const Var& x) { return x; };
  EXPECT_THAT(message_of([&] { grad(grad(identity))(numbers({1, 2})); }), HasSubstr("must return a scalar"));
  EXPECT_THAT(message_of([&] {
                hvp(identity, numbers({1, 2}), numbers({1, 2}));
              }),
              HasSubstr("hvp: f must return a scalar but returned shape [2]"));
  EXPECT_THAT(message_of([&] {
                hvp(cubes, numbers({1, 2}), numbers({1}));
              }),
              HasSubstr("hvp: the direction must have shape [2] but has [1]"));
  EXPECT_THAT(message_of([&] {
                jvp(cubes, numbers({1, 2}), Var(zeros({2}, DType::f32)));
              }),
              HasSubstr("jvp: the direction must have dtype f64 but has f32"));
  EXPECT_THAT(message_of([&] { jvp(cubes, numbers({1, 2}), Var()); }), HasSubstr("jvp: the direction must be defined"));
  const auto sum_of_all = [](const std::vector<Var>& x) { return sum(x[0] * x[1]); };
  const std::vector<Var> two{numbers({1, 2}), numbers({3, 4})}, one{numbers({1, 2})};
  EXPECT_THAT(message_of([&] { hvp(sum_of_all, two, one); }), HasSubstr("hvp: the direction must have 2 parts"));
  EXPECT_THAT(message_of([&] { jvp(sum_of_all, two, one); }), HasSubstr("jvp: the direction must have 2 parts"));
  EXPECT_THAT(message_of([&] { hvp(cubes, zeros({2}, DType::i32), zeros({2}, DType::i32)); }),
              HasSubstr("hvp: x must be a floating-point tensor"));
}

}  // namespace
}  // namespace braid::derivatives_test
