#include <braid/autograd/ops/index_select.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::index_select_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(IndexSelect, TakesPositionsInTheGivenOrder) {
  expect_values(index_select(kX, 1, i32({4}, {2, 0, 0, 1})), {2, 4}, {3, 1, 1, 2, 6, 4, 4, 5});
  expect_values(index_select(kX, 0, i32({1}, {1})), {1, 3}, {4, 5, 6});
  expect_values(index_select(kX.transpose(), -2, i32({2}, {2, 1})), {2, 2}, {3, 6, 2, 5});
  EXPECT_EQ(index_select(kX, 0, zeros({0}, DType::i32)).shape(), (Shape{0, 3}));
}

TEST(IndexSelect, CountsNegativeIdsFromTheEnd) {
  expect_values(index_select(kX, 1, i32({3}, {-1, 0, -3})), {2, 3}, {3, 1, 1, 6, 4, 4});
  const auto grads = gradients(
      [](auto x) {
        return index_select(x[0], 0, i32({2}, {-1, 1}));
      },
      {kX}, f64({2, 3}, {1, 2, 3, 4, 5, 6}));
  expect_values(grads[0], {2, 3}, {0, 0, 0, 5, 7, 9});
}

TEST(IndexSelect, RepeatedIdsAddTheirGradients) {
  const auto grads = gradients(
      [](auto x) {
        return index_select(x[0], 1, i32({3}, {2, 0, 2}));
      },
      {kX}, f64({2, 3}, {1, 2, 3, 4, 5, 6}));
  expect_values(grads[0], {2, 3}, {2, 0, 4, 5, 0, 10});
}

TEST(IndexSelect, GradientsPassGradcheck) {
  for (const int axis : {0, 1, -1})
    expect_gradients([&](auto x) { return index_select(x[0], axis, i32({4}, {1, 0, 1, 1})); }, {normal({2, 3, 70})});
}

TEST(IndexSelect, GivesTheSameBitsForAnyNumberOfThreads) {
  Rng rng(3);
  const Tensor ids = randint(0, 10, {500}, rng);
  for (const int axis : {0, 1})
    expect_same_bits_on_any_threads([&](auto x) { return index_select(x[0], axis, ids); },
                                    {normal({10, 10, 200}, 1, DType::f32)});
}

TEST(IndexSelect, RejectsIdsOutOfRange) {
  EXPECT_THAT(
      [] {
        index_select(kX, 1, i32({3}, {0, 3, 1}));
      },
      ThrowsMessage<ValueError>("index_select: ids must lie in [-3, 3) but the one at [1] is 3"));
  EXPECT_THAT([] { index_select(kX, 1, i32({1}, {-4})); },
              ThrowsMessage<ValueError>("index_select: ids must lie in [-3, 3) but the one at [0] is -4"));
}

TEST(IndexSelect, RejectsIdsOfTheWrongKind) {
  EXPECT_THAT([] { index_select(kX, 1, zeros({2})); },
              ThrowsMessage<DTypeError>("index_select: ids must have dtype i32 but have f32"));
  EXPECT_THAT(
      [] {
        index_select(kX, 1, i32({1, 1}, {0}));
      },
      ThrowsMessage<ShapeError>("index_select: ids must have one axis but have shape [1, 1]"));
}

}  // namespace
}  // namespace braid::op_tests::index_select_test
