#include <braid/autograd/ops/sqrt.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::sqrt_test {
namespace {

using ::testing::ThrowsMessage;

double reciprocal_sqrt(double x) { return 1 / std::sqrt(x); }

TEST(Sqrt, MatchesTheStandardLibrary) { expect_elementwise(sqrt, std::sqrt, 0, 10); }

TEST(Sqrt, OfZeroHasAnInfiniteSlopeAndBelowItIsNaN) {
  EXPECT_EQ(value_and_slope(sqrt, 0), std::pair(0.0, kInfinity));
  EXPECT_TRUE(std::isnan(value_and_slope(sqrt, -1).first));
}

TEST(Sqrt, RejectsIntegers) {
  EXPECT_THAT([] { sqrt(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("sqrt: expected a floating-point tensor but has dtype i32"));
}

TEST(Rsqrt, IsTheReciprocalSquareRoot) {
  expect_elementwise(rsqrt, reciprocal_sqrt, 0.01, 10);
  EXPECT_EQ(value_and_slope(rsqrt, 0).first, kInfinity);
}

}  // namespace
}  // namespace braid::op_tests::sqrt_test
