#include <braid/autograd/ops/split.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/concat.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::split_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});

TEST(Split, CutsAnAxisIntoPartsOfTheGivenSizes) {
  const std::vector<Var> parts = split(kX, -1, {1, 0, 3});
  ASSERT_EQ(parts.size(), 3U);
  expect_values(parts[0], {2, 1}, {1, 5});
  EXPECT_EQ(parts[1].shape(), (Shape{2, 0}));
  expect_values(parts[2], {2, 3}, {2, 3, 4, 6, 7, 8});
  EXPECT_EQ(parts[2].value().data<double>(), kX.data<double>() + 1);  // a view
  EXPECT_TRUE(split(zeros({0}), 0, {}).empty());
}

TEST(Split, ConcatPutsTheAxisTogetherAgain) {
  for (const int axis : {0, 1, 2}) {
    const Tensor x = normal({2, 4, 6});
    EXPECT_TRUE(identical(concat(split(x, axis, {1, x.size(axis) - 1}), axis).value(), x));
    EXPECT_TRUE(identical(concat(chunk(x, axis, 2), axis).value(), x));
  }
}

TEST(Split, APartThatIsNotUsedHasNoGradient) {
  const auto grads = gradients([](auto x) { return split(x[0], 1, {1, 2, 1})[1]; }, {kX}, f64({2, 2}, {1, 2, 3, 4}));
  expect_values(grads[0], {2, 4}, {0, 1, 2, 0, 0, 3, 4, 0});
}

TEST(Split, GradientsPassGradcheck) {
  for (const int axis : {0, 1, -1})
    expect_gradients(
        [&](auto x) {
          const std::vector<Var> parts = split(x[0], axis, {1, 2, 1});
          return parts[0] * parts[1] - parts[2];
        },
        {normal({4, 4, 4})});
}

TEST(Split, RejectsSizesThatDoNotAddUp) {
  const char* message = "split: sizes [1, 2] must add up to that of axis 1 of x [2, 4]";
  EXPECT_THAT([] { split(kX, 1, {1, 2}); }, ThrowsMessage<ShapeError>(message));
  EXPECT_THAT([] { split(kX, 1, {1, 9223372036854775807}); }, ::testing::Throws<ShapeError>());
  EXPECT_THAT([] { split(kX, 1, {-1, 5}); }, ::testing::Throws<ShapeError>());
  EXPECT_THAT([] { split(kX, 1, {}); }, ::testing::Throws<ShapeError>());
  EXPECT_THAT([] { split(kX, 2, {1}); }, ThrowsMessage<ShapeError>("split: x [2, 4] has no axis 2"));
}

TEST(Chunk, CutsAnAxisIntoPartsOfOneSize) {
  const std::vector<Var> parts = chunk(kX, 1, 2);
  ASSERT_EQ(parts.size(), 2U);
  expect_values(parts[0], {2, 2}, {1, 2, 5, 6});
  expect_values(parts[1], {2, 2}, {3, 4, 7, 8});
  EXPECT_EQ(chunk(zeros({0}), 0, 3).size(), 3U);
}

TEST(Chunk, GradientsPassGradcheck) {
  expect_gradients(
      [](auto x) {
        const std::vector<Var> qkv = chunk(x[0], -1, 3);
        return qkv[0] * qkv[1] / (qkv[2] * qkv[2] + 1);
      },
      {normal({2, 6})});
}

TEST(Chunk, RejectsAnAxisThatCannotBeCutSo) {
  EXPECT_THAT([] { chunk(kX, 1, 3); },
              ThrowsMessage<ShapeError>("chunk: axis 1 of x [2, 4] has no 3 parts of one size"));
  EXPECT_THAT([] { chunk(kX, 1, 0); }, ThrowsMessage<ValueError>("chunk: count must be positive but is 0"));
  EXPECT_THAT([] { chunk(kX, -3, 1); }, ThrowsMessage<ShapeError>("chunk: x [2, 4] has no axis -3"));
}

TEST(Unbind, GivesEachPositionOfAnAxis) {
  const std::vector<Var> rows = unbind(kX), columns = unbind(kX, -1);
  ASSERT_EQ(rows.size(), 2U);
  ASSERT_EQ(columns.size(), 4U);
  expect_values(rows[1], {4}, {5, 6, 7, 8});
  expect_values(columns[2], {2}, {3, 7});
  EXPECT_TRUE(identical(stack(columns, -1).value(), kX));
  EXPECT_TRUE(unbind(zeros({0, 3})).empty());
}

TEST(Unbind, GradientsPassGradcheck) {
  expect_gradients(
      [](auto x) {
        const std::vector<Var> rows = unbind(x[0], 1);
        return rows[0] * rows[2] * rows[2];
      },
      {normal({2, 3, 2})});
}

TEST(Unbind, RejectsAMissingAxis) {
  EXPECT_THAT([] { unbind(kX, 2); }, ThrowsMessage<ShapeError>("unbind: x [2, 4] has no axis 2"));
}

}  // namespace
}  // namespace braid::op_tests::split_test
