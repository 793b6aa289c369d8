#include <braid/autograd/ops/softplus.h>

#include <cmath>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::softplus_test {
namespace {

using ::testing::ThrowsMessage;

/// Naive, in a wider type.
double reference(double x) { return static_cast<double>(std::log1p(std::exp(static_cast<long double>(x)))); }

TEST(Softplus, MatchesTheDefinition) {
  expect_elementwise(softplus, reference, -12, 12);
  for (double x = -700; x < 700; x += 6.7) expect_relatively_close(softplus, reference, x);
}

TEST(Softplus, GoesToZeroAndToX) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(value_and_slope(softplus, -kInfinity, dtype), std::pair(0.0, 0.0));
    EXPECT_EQ(value_and_slope(softplus, -65536, dtype), std::pair(0.0, 0.0));
    EXPECT_EQ(value_and_slope(softplus, 65536, dtype), std::pair(65536.0, 1.0));
    EXPECT_EQ(value_and_slope(softplus, kInfinity, dtype), std::pair(kInfinity, 1.0));
    EXPECT_TRUE(std::isnan(value_and_slope(softplus, kNaN, dtype).first));
    EXPECT_TRUE(std::isnan(value_and_slope(softplus, kNaN, dtype).second));
  }
}

TEST(Softplus, TheSlopeIsPreciseFarOut) {
  EXPECT_NEAR(value_and_slope(softplus, -80).second / std::exp(-80), 1, 1e-14);
  EXPECT_EQ(value_and_slope(softplus, 0).second, 0.5);
}

TEST(Softplus, RejectsIntegers) {
  EXPECT_THAT([] { softplus(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("softplus: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::softplus_test
