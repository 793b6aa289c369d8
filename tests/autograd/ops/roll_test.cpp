#include <braid/autograd/ops/roll.h>

#include <limits>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::roll_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Roll, MovesPositionsAround) {
  expect_values(roll(kX, 1, 1), {2, 3}, {3, 1, 2, 6, 4, 5});
  expect_values(roll(kX, -1, -1), {2, 3}, {2, 3, 1, 5, 6, 4});
  expect_values(roll(kX, 0, 3), {2, 3}, {4, 5, 6, 1, 2, 3});
  expect_values(roll(kX, 1, -6), {2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(roll(kX.transpose(), 0, 2), {3, 2}, {2, 5, 3, 6, 1, 4});
  expect_values(roll(i32({3}, {1, 2, 3}), 0, 1), {3}, {3, 1, 2});
  EXPECT_EQ(roll(zeros({2, 0}), 1, 5).shape(), (Shape{2, 0}));
}

TEST(Roll, TakesAnyShift) {
  expect_values(roll(kX, 1, std::numeric_limits<std::int64_t>::max()), {2, 3}, {3, 1, 2, 6, 4, 5});  // 1 mod 3
  expect_values(roll(kX, 1, std::numeric_limits<std::int64_t>::min()), {2, 3}, {3, 1, 2, 6, 4, 5});  // -2 mod 3
}

TEST(Roll, TheGradientIsRolledBack) {
  const auto grads = gradients([](auto x) { return roll(x[0], 1, 1); }, {kX}, kX);
  expect_values(grads[0], {2, 3}, {2, 3, 1, 5, 6, 4});
  for (const int axis : {0, 1, 2}) expect_gradients([=](auto x) { return roll(x[0], axis, -5); }, {normal({2, 3, 4})});
}

TEST(Roll, RejectsAnAxisThatIsNotThere) {
  EXPECT_THAT([] { roll(kX, 2, 1); }, ThrowsMessage<ShapeError>("roll: x [2, 3] has no axis 2"));
}

}  // namespace
}  // namespace braid::op_tests::roll_test
