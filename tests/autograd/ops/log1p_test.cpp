#include <braid/autograd/ops/log1p.h>

#include <cmath>

#include <braid/autograd/ops/arithmetic.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::log1p_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Log1p, MatchesTheStandardLibrary) {
  expect_elementwise(log1p, std::log1p, -0.99, 3);
  expect_elementwise(log1p, std::log1p, 3, 1e30);
}

TEST(Log1p, IsPreciseCloseToZero) {
  for (double size = 1; size > 1e-300; size /= 7)
    for (const double x : {size, -0.9 * size}) expect_relatively_close(log1p, std::log1p, x);
  EXPECT_TRUE(std::signbit(log1p(scalar(-0.0)).item()));
}

TEST(Log1p, GoesToInfinity) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(value_and_slope(log1p, -1, dtype), std::pair(-kInfinity, kInfinity));
    EXPECT_EQ(value_and_slope(log1p, kInfinity, dtype), std::pair(kInfinity, 0.0));
    for (const double x : {-1.5, -kInfinity, kNaN}) EXPECT_TRUE(std::isnan(log1p(scalar(x, dtype)).item())) << x;
  }
}

TEST(Log1p, RejectsIntegers) {
  EXPECT_THAT([] { log1p(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("log1p: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::log1p_test
