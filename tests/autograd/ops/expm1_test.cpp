#include <braid/autograd/ops/expm1.h>

#include <cmath>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::expm1_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Expm1, MatchesTheStandardLibrary) {
  expect_elementwise(expm1, std::expm1, -12, 12);
  expect_elementwise(expm1, std::expm1, 30, 80);
}

TEST(Expm1, IsPreciseCloseToZero) {
  for (double size = 1; size > 1e-300; size /= 7)
    for (const double x : {size, -size}) expect_relatively_close(expm1, std::expm1, x);
  EXPECT_EQ(expm1(scalar(0)).item(), 0);
  for (const DType dtype : {DType::f32, DType::f64}) EXPECT_TRUE(std::signbit(expm1(scalar(-0.0, dtype)).item()));
}

TEST(Expm1, GoesToMinusOneAndToInfinity) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(value_and_slope(expm1, -kInfinity, dtype), std::pair(-1.0, 0.0));
    EXPECT_EQ(value_and_slope(expm1, -1e30, dtype), std::pair(-1.0, 0.0));
    EXPECT_EQ(value_and_slope(expm1, 1e30, dtype), std::pair(kInfinity, kInfinity));
    EXPECT_EQ(value_and_slope(expm1, kInfinity, dtype), std::pair(kInfinity, kInfinity));
    EXPECT_TRUE(std::isnan(value_and_slope(expm1, kNaN, dtype).first));
  }
  expect_relatively_close(expm1, std::expm1, 709.7);
}

TEST(Expm1, TheSlopeIsPreciseWhereTheValueIsMinusOne) {
  const auto [value, slope] = value_and_slope(expm1, -80);
  EXPECT_EQ(value, -1);
  EXPECT_NEAR(slope / std::exp(-80), 1, 1e-14);
}

TEST(Expm1, RejectsIntegers) {
  EXPECT_THAT([] { expm1(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("expm1: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::expm1_test
