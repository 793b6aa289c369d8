#include <braid/autograd/ops/tril.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::tril_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Tril, KeepsTheLowerTriangle) {
  expect_values(tril(kX), {2, 3}, {1, 0, 0, 4, 5, 0});
  expect_values(tril(kX, 1), {2, 3}, {1, 2, 0, 4, 5, 6});
  expect_values(tril(kX, -1), {2, 3}, {0, 0, 0, 4, 0, 0});
  expect_values(tril(kX, -2), {2, 3}, {0, 0, 0, 0, 0, 0});
  expect_values(tril(kX, 5), {2, 3}, {1, 2, 3, 4, 5, 6});
}

TEST(Triu, KeepsTheUpperTriangle) {
  expect_values(triu(kX), {2, 3}, {1, 2, 3, 0, 5, 6});
  expect_values(triu(kX, 1), {2, 3}, {0, 2, 3, 0, 0, 6});
  expect_values(triu(kX, -1), {2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(triu(kX, 3), {2, 3}, {0, 0, 0, 0, 0, 0});
}

TEST(Tril, WorksOnEveryMatrixOfABatch) {
  const Tensor batch = f64({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_values(tril(batch), {2, 2, 2}, {1, 0, 3, 4, 5, 0, 7, 8});
  expect_values(triu(batch.transpose()), {2, 2, 2}, {1, 3, 0, 4, 5, 7, 0, 8});
  EXPECT_EQ(tril(zeros({2, 0, 3})).shape(), (Shape{2, 0, 3}));
}

TEST(Tril, WhatIsDroppedDoesNoHarm) {
  const auto grads =
      gradients([](auto x) { return tril(x[0]); }, {f64({2, 2}, {1, kNaN, 3, 4})}, f64({2, 2}, {5, 6, 7, 8}));
  expect_values(grads[0], {2, 2}, {5, 0, 7, 8});
  expect_values(tril(f64({2, 2}, {1, kNaN, 3, 4})), {2, 2}, {1, 0, 3, 4});
}

TEST(Tril, TakesIntegers) { expect_values(triu(i32({2, 2}, {1, 2, 3, 4}), 1), {2, 2}, {0, 2, 0, 0}); }

TEST(Tril, RejectsWhatIsNoMatrix) {
  EXPECT_THAT([] { tril(zeros({3})); },
              ThrowsMessage<ShapeError>("tril: x must have at least 2 axes but has shape [3]"));
  EXPECT_THAT([] { triu(scalar(1)); }, ThrowsMessage<ShapeError>("triu: x must have at least 2 axes but has shape []"));
}

}  // namespace
}  // namespace braid::op_tests::tril_test
