#include <braid/autograd/ops/tanh.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::tanh_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Tanh, MatchesTheStandardLibrary) {
  expect_elementwise(tanh, std::tanh, -12, 12);
  expect_elementwise(tanh, std::tanh, -1e-3, 1e-3);
}

TEST(Tanh, EndsAtOne) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(value_and_slope(tanh, kInfinity, dtype), std::pair(1.0, 0.0));
    EXPECT_EQ(value_and_slope(tanh, -kInfinity, dtype), std::pair(-1.0, 0.0));
    EXPECT_TRUE(std::isnan(value_and_slope(tanh, kNaN, dtype).first));
  }
}

TEST(Tanh, RejectsIntegers) {
  EXPECT_THAT([] { tanh(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("tanh: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::tanh_test
