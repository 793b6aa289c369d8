#include <braid/autograd/ops/pow.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::pow_test {
namespace {

using ::testing::ThrowsMessage;

const auto kPow = [](std::span<const Var> x) { return pow(x[0], x[1]); };

TEST(Pow, MatchesTheStandardLibrary) {
  for (const double p : {-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0}) {
    const Tensor y = pow(f64({3}, {0.3, 1, 2.5}), p).value();
    expect_values(y, {3}, {std::pow(0.3, p), 1, std::pow(2.5, p)}, 1e-14);
  }
}

TEST(Pow, TakesNegativeNumbersToWholePowers) {
  expect_values(pow(f64({2}, {-2, -3}), 3), {2}, {-8, -27});
  EXPECT_TRUE(std::isnan(pow(scalar(-2), 0.5).item()));
}

TEST(Pow, HasNoSlopeWhereThePowerIsZero) {
  EXPECT_EQ(value_and_slope([](const Var& x) { return pow(x, 0); }, 0), std::pair(1.0, 0.0));
}

TEST(Pow, GradientsPassGradcheck) {
  for (const double p : {-1.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0})
    expect_gradients([p](auto x) { return pow(x[0], p); }, {f64({3}, {0.4, 1, 2.5})});
}

TEST(Pow, BroadcastsBaseAndExponent) {
  expect_values(pow(f64({2, 1}, {2, 3}), f64({3}, {0, 1, 2})), {2, 3}, {1, 2, 4, 1, 3, 9});
  expect_gradients(kPow, {f64({2, 1}, {0.6, 2}), f64({3}, {-0.5, 1, 2})});
}

TEST(Pow, OfZeroHasNoSlopeInTheExponent) {
  const auto grads = gradients(kPow, {f64({2}, {0, 0}), f64({2}, {0, 2})}, f64({2}, {1, 1}));
  expect_values(grads[0], {2}, {0, 0});
  expect_values(grads[1], {2}, {0, 0});
}

TEST(Pow, OfZeroHasTheSlopeOfItsPowerByRuleToo) {
  const auto power = [](const Var& a) { return pow(a, Var(f64({2}, {1, 0}))); };
  expect_values(jvp(power, Var(f64({2}, {0, 0})), Var(f64({2}, {1, 1}))).second.value(), {2}, {1, 0});
}

TEST(Pow, RejectsShapesThatDoNotBroadcastAndMixedDtypes) {
  EXPECT_THAT([] { pow(zeros({2}), zeros({3})); },
              ThrowsMessage<ShapeError>("pow: shapes [2] and [3] do not broadcast"));
  EXPECT_THAT([] { pow(zeros({2}), zeros({2}, DType::f64)); },
              ThrowsMessage<DTypeError>("pow: inputs must have the same dtype but have f32 and f64"));
}

TEST(Pow, TakesANumberToThePowersOfATensor) {
  expect_values(pow(2, f64({3}, {-1, 0, 3})), {3}, {0.5, 1, 8});
  EXPECT_EQ(pow(2.0, ones({2})).dtype(), DType::f32);
  expect_gradients([](auto x) { return pow(2.5, x[0]); }, {f64({3}, {-1, 0, 3})});
}

}  // namespace
}  // namespace braid::op_tests::pow_test
