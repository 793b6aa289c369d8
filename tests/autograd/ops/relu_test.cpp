#include <braid/autograd/ops/relu.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::relu_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Relu, KeepsWhatIsPositive) {
  expect_values(relu(f64({2, 3}, {-2, -0.5, 0, 0.5, 2, kInfinity})), {2, 3}, {0, 0, 0, 0.5, 2, kInfinity});
}

TEST(Relu, PassesNaNOn) { EXPECT_TRUE(std::isnan(relu(scalar(kNaN)).item())); }

TEST(Relu, HasNoSlopeAtZero) { EXPECT_EQ(value_and_slope(relu, 0), std::pair(0.0, 0.0)); }

TEST(Relu, RejectsIntegers) {
  EXPECT_THAT([] { relu(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("relu: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::relu_test
