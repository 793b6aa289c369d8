#include <braid/autograd/ops/sigmoid.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::sigmoid_test {
namespace {

using ::testing::ThrowsMessage;

double reference(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Sigmoid, MatchesTheFormula) { expect_elementwise(sigmoid, reference, -30, 30); }

TEST(Sigmoid, HasNoSlopeFarOut) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(value_and_slope(sigmoid, -1000, dtype), std::pair(0.0, 0.0));
    EXPECT_EQ(value_and_slope(sigmoid, 1000, dtype), std::pair(1.0, 0.0));
    EXPECT_EQ(value_and_slope(sigmoid, -kInfinity, dtype), std::pair(0.0, 0.0));
    EXPECT_EQ(value_and_slope(sigmoid, kInfinity, dtype), std::pair(1.0, 0.0));
    EXPECT_TRUE(std::isnan(value_and_slope(sigmoid, kNaN, dtype).first));
  }
}

TEST(Sigmoid, RejectsIntegers) {
  EXPECT_THAT([] { sigmoid(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("sigmoid: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::sigmoid_test
