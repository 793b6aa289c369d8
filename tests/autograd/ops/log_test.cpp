#include <braid/autograd/ops/log.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::log_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Log, MatchesTheStandardLibrary) {
  expect_elementwise(log, std::log, 0.01, 3);
  expect_elementwise(log, std::log, 1, 1e6);
}

TEST(Log, OfZeroIsMinusInfinityAndBelowItNaN) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(value_and_slope(log, 0, dtype).first, -kInfinity);
    EXPECT_TRUE(std::isnan(value_and_slope(log, -1, dtype).first));
    EXPECT_TRUE(std::isnan(value_and_slope(log, kNaN, dtype).first));
    EXPECT_EQ(value_and_slope(log, kInfinity, dtype), std::pair(kInfinity, 0.0));
  }
}

TEST(Log, TakesSubnormalNumbers) { EXPECT_NEAR(value_and_slope(log, 1e-310).first, std::log(1e-310), 1e-12); }

TEST(Log, RejectsIntegers) {
  EXPECT_THAT([] { log(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("log: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::log_test
