#include <braid/autograd/ops/repeat.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::repeat_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 2}, {1, 2, 3, 4});

TEST(Repeat, PutsCopiesOneAfterTheOther) {
  expect_values(repeat(kX, {2, 1}), {4, 2}, {1, 2, 3, 4, 1, 2, 3, 4});
  expect_values(repeat(kX, {1, 2}), {2, 4}, {1, 2, 1, 2, 3, 4, 3, 4});
  expect_values(repeat(kX.transpose(), {2, 2}), {4, 4}, {1, 3, 1, 3, 2, 4, 2, 4, 1, 3, 1, 3, 2, 4, 2, 4});
  expect_values(repeat(i32({2}, {5, 6}), {3}), {6}, {5, 6, 5, 6, 5, 6});
  expect_values(repeat(scalar(3), {}), {}, {3});
}

TEST(Repeat, MatchesIndexArithmeticInManyAxes) {
  const Tensor x = normal({2, 1, 3, 1, 2, 1, 1, 2}), y = repeat(x, {1, 2, 2, 1, 3, 1, 2, 1});
  for (auto index : indices(y.shape())) {
    const double element = at(y, index);
    for (int axis = 0; axis < x.rank(); ++axis) index[static_cast<std::size_t>(axis)] %= x.size(axis);
    ASSERT_EQ(element, at(x, index));
  }
}

TEST(Repeat, TheGradientIsTheSumOverTheCopies) {
  const auto grads = gradients(
      [](auto x) {
        return repeat(x[0], {1, 2});
      },
      {kX}, f64({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  expect_values(grads[0], {2, 2}, {4, 6, 12, 14});
  expect_gradients([](auto x) { return repeat(x[0], {2, 1, 3}); }, {normal({2, 3, 2})});
}

TEST(Repeat, MayRepeatNothing) {
  EXPECT_EQ(repeat(kX, {0, std::int64_t{1} << 40}).shape(), (Shape{0, std::int64_t{1} << 41}));
  EXPECT_EQ(repeat(zeros({0, 2}), {3, 2}).shape(), (Shape{0, 4}));
  const auto grads = gradients([](auto x) { return repeat(x[0], {0, 3}); }, {kX}, zeros({0, 6}, DType::f64));
  expect_values(grads[0], {2, 2}, {0, 0, 0, 0});
}

TEST(Repeat, RejectsCountsThatDoNotFit) {
  EXPECT_THAT([] { repeat(kX, {2}); },
              ThrowsMessage<ShapeError>("repeat: x [2, 2] needs a count for each axis but got [2]"));
  EXPECT_THAT([] { repeat(kX, {-1, 2}); }, ThrowsMessage<ShapeError>("repeat: sizes must not be negative but got -1"));
  EXPECT_THAT(
      [] {
        repeat(kX, {1, std::int64_t{1} << 59});
      },
      ThrowsMessage<ShapeError>("repeat: [576460752303423488, 2] has more than 2^59 elements"));
}

}  // namespace
}  // namespace braid::op_tests::repeat_test
