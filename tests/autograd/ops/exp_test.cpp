#include <braid/autograd/ops/exp.h>

#include <cmath>
#include <limits>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::exp_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Exp, MatchesTheStandardLibrary) { expect_elementwise(exp, std::exp, -12, 12); }

TEST(Exp, GoesToZeroAndToInfinity) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(value_and_slope(exp, -kInfinity, dtype), std::pair(0.0, 0.0));
    EXPECT_EQ(value_and_slope(exp, -1e30, dtype), std::pair(0.0, 0.0));
    EXPECT_EQ(value_and_slope(exp, 1e30, dtype).first, kInfinity);
    EXPECT_EQ(value_and_slope(exp, kInfinity, dtype).first, kInfinity);
    EXPECT_TRUE(std::isnan(value_and_slope(exp, kNaN, dtype).first));
  }
}

TEST(Exp, IsInfiniteFromWhereTheResultIs) {
  for (const auto& [dtype, last] : {std::pair(DType::f32, 88.72283), {DType::f64, 709.782712893384}}) {
    EXPECT_LT(value_and_slope(exp, last - 1e-5, dtype).first, kInfinity);
    for (double x = last + 1e-4; x < last + 3; x += 0.01)
      EXPECT_EQ(value_and_slope(exp, x, dtype).first, kInfinity) << x;
  }
}

template <class T>
void expect_no_subnormals(double first, double last) {
  const auto smallest = static_cast<double>(std::numeric_limits<T>::min());
  for (double at = first; at > last; at -= 0.01) {
    const auto x = static_cast<double>(static_cast<T>(at));
    const double y = exp(scalar(x, dtype_of<T>())).item(), exact = std::exp(x);
    if (exact > smallest * 1.001) {
      EXPECT_NEAR(y / exact, 1, 1e-6) << x;
    } else if (exact < smallest) {
      EXPECT_EQ(y, 0) << x;
    }
  }
  EXPECT_EQ(exp(scalar(smallest / 4, dtype_of<T>())).item(), 1);
}

TEST(Exp, FlushesSubnormalResultsToZero) {
  expect_no_subnormals<float>(-85, -105);
  expect_no_subnormals<double>(-706, -750);
}

TEST(Exp, RejectsIntegers) {
  EXPECT_THAT([] { exp(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("exp: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::exp_test
