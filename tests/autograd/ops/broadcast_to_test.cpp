#include <braid/autograd/ops/broadcast_to.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::broadcast_to_test {
namespace {

using ::testing::ThrowsMessage;

TEST(BroadcastTo, RepeatsAlongNewAxesAndAxesOfSizeOne) {
  expect_values(broadcast_to(f64({2, 1}, {1, 2}), {2, 3}), {2, 3}, {1, 1, 1, 2, 2, 2});
  expect_values(broadcast_to(f64({2}, {1, 2}), {2, 1, 2}), {2, 1, 2}, {1, 2, 1, 2});
  expect_values(broadcast_to(f64({}, {5}), {2}), {2}, {5, 5});
}

TEST(BroadcastTo, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return broadcast_to(x[0], {4, 2, 3}); }, {normal({2, 1})});
  expect_gradients([](auto x) { return broadcast_to(x[0], {2}); }, {normal({})});
}

TEST(BroadcastTo, RejectsAShapeThatDoesNotFit) {
  EXPECT_THAT(
      [] {
        broadcast_to(zeros({2}), {2, 3});
      },
      ThrowsMessage<ShapeError>("broadcast_to: shape [2] does not broadcast to [2, 3]"));
}

}  // namespace
}  // namespace braid::op_tests::broadcast_to_test
