#include <braid/autograd/ops/clamp.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::clamp_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Clamp, MovesElementsIntoTheRange) {
  expect_values(clamp(f64({5}, {-kInfinity, -1, 0.5, 2, 3}), -1, 2), {5}, {-1, -1, 0.5, 2, 2});
  EXPECT_TRUE(std::isnan(clamp(scalar(kNaN), 0, 1).item()));
}

TEST(Clamp, PassesTheGradientOnInsideAndAtTheBounds) {
  const auto grads =
      gradients([](auto x) { return clamp(x[0], -1, 2); }, {f64({5}, {-2, -1, 0, 2, 3})}, f64({5}, {1, 2, 3, 4, 5}));
  expect_values(grads[0], {5}, {0, 2, 3, 4, 0});
}

TEST(Clamp, TakesIntegers) {
  expect_values(clamp(i32({4}, {-5, 0, 2, 9}), -1, 2), {4}, {-1, 0, 2, 2});
  EXPECT_THAT([] { clamp(i32({1}, {0}), 0, 0.5); },
              ThrowsMessage<ValueError>("clamp: value must be an integer that fits i32 but is 0.5"));
  EXPECT_THROW(clamp(i32({1}, {0}), 0.5, 2), ValueError);
}

TEST(Clamp, RejectsBoundsInTheWrongOrder) {
  EXPECT_THAT([] { clamp(zeros({2}), 2, 1); },
              ThrowsMessage<ValueError>("clamp: low must not exceed high but they are 2 and 1"));
}

}  // namespace
}  // namespace braid::op_tests::clamp_test
