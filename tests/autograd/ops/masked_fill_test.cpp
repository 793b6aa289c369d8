#include <braid/autograd/ops/masked_fill.h>

#include <braid/autograd/draw.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::masked_fill_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6}), kMask = i32({3}, {0, 1, 0});

TEST(MaskedFill, FillsWhereTheMaskIsSet) {
  expect_values(masked_fill(kX, kMask, -kInfinity), {2, 3}, {1, -kInfinity, 3, 4, -kInfinity, 6});
  expect_values(masked_fill(kX, f64({2, 1}, {0.1, 0}), 7), {2, 3}, {7, 7, 7, 4, 5, 6});
}

TEST(MaskedFill, TakesAMaskOfAnyDtype) {
  expect_values(masked_fill(ones({2}), f64({2}, {1e-300, 0}), 7), {2}, {7, 1});
  expect_values(masked_fill(i32({2}, {3, 4}), f64({2}, {0.5, 0}), 7), {2}, {7, 4});
}

TEST(MaskedFill, WhatIsFilledGetsNoGradient) {
  const auto grads =
      gradients([](auto x) { return masked_fill(x[0], kMask, 0); }, {f64({3}, {1, kNaN, 3})}, f64({3}, {5, 6, 7}));
  expect_values(grads[0], {3}, {5, 0, 7});
  expect_gradients([](auto x) { return masked_fill(x[0], kMask, 2); }, {normal({2, 3})});
}

TEST(MaskedFill, IsRecordedUnderItsName) {
  Tape tape;
  masked_fill(tape.watch(kX), kMask, 0);
  EXPECT_THAT(draw(tape).dot(), ::testing::HasSubstr("label=\"masked_fill"));
}

TEST(MaskedFill, RejectsAMaskThatIsLargerAndAValueThatDoesNotFit) {
  EXPECT_THAT(
      [] {
        masked_fill(ones({3}), ones({2, 3}), 0);
      },
      ThrowsMessage<ShapeError>("masked_fill: mask [2, 3] does not broadcast to x [3]"));
  EXPECT_THAT([] { masked_fill(kX, ones({2}), 0); },
              ThrowsMessage<ShapeError>("masked_fill: shapes [2, 3] and [2] do not broadcast"));
  EXPECT_THAT([] { masked_fill(ones({3}, DType::i32), kMask, kInfinity); },
              ThrowsMessage<ValueError>("masked_fill: value must be an integer that fits i32 but is inf"));
}

}  // namespace
}  // namespace braid::op_tests::masked_fill_test
