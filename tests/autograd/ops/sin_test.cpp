#include <braid/autograd/ops/sin.h>

#include <cmath>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::sin_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Sin, MatchesTheStandardLibrary) {
  expect_elementwise(sin, std::sin, -20, 20);
  EXPECT_EQ(sin(scalar(1e22, DType::f64)).item(), -0.8522008497671888);  // arguments are reduced exactly
}

TEST(Cos, MatchesTheStandardLibrary) {
  expect_elementwise(cos, std::cos, -20, 20);
  EXPECT_EQ(cos(scalar(1e22, DType::f64)).item(), 0.523214785395139);
}

TEST(Sin, TheSlopeIsTheCosine) {
  const auto [value, slope] = value_and_slope(sin, 1e6);
  EXPECT_NEAR(value * value + slope * slope, 1, 1e-15);
  EXPECT_EQ(value_and_slope(cos, 1e6), std::pair(slope, -value));
}

TEST(Sin, IsNaNAtInfinityAndNaN) {
  for (const double x : {kInfinity, -kInfinity, kNaN}) {
    EXPECT_TRUE(std::isnan(sin(scalar(x)).item()));
    EXPECT_TRUE(std::isnan(cos(scalar(x)).item()));
  }
}

TEST(Sin, RejectsIntegers) {
  EXPECT_THAT([] { sin(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("sin: expected a floating-point tensor but has dtype i32"));
  EXPECT_THAT([] { cos(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("cos: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::sin_test
