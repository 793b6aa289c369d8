#include <braid/autograd/ops/max.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::max_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 5, 3, 4, -2, 6});

TEST(Max, FindsTheLargestElement) {
  expect_values(max(kX), {}, {6});
  expect_values(max(kX, {0}), {3}, {4, 5, 6});
  expect_values(max(kX, {1}, true), {2, 1}, {5, 6});
}

TEST(Max, PassesNaNOn) { EXPECT_TRUE(std::isnan(max(f64({3}, {1, kNaN, 2})).item())); }

TEST(Max, TheGradientsOfAllThatIsReducedToNaNAreNaN) {
  for (const auto& f : {GradcheckFunction([](auto x) { return max(x[0], 1); }),
                        GradcheckFunction([](auto x) { return min(x[0], 1); })}) {
    const auto grads = gradients(f, {f64({2, 2}, {1, kNaN, 2, 2})}, f64({2}, {10, 20}));
    EXPECT_TRUE(std::isnan(grads[0].at({0, 0})) && std::isnan(grads[0].at({0, 1})));
    expect_values(grads[0].slice(0, 1, 2), {1, 2}, {10, 10});
  }
}

TEST(Max, TakesIntegers) {
  const Tensor x = i32({2, 2}, {1, -2147483647 - 1, 2147483647, 4});
  expect_values(max(x, 1), {2}, {1, 2147483647});
  expect_values(min(x, 0), {2}, {1, -2147483648.0});
  EXPECT_EQ(max(x).dtype(), DType::i32);
}

TEST(Max, SplitsTheGradientOfTies) {
  const auto grads =
      gradients([](auto x) { return max(x[0], {1}); }, {f64({2, 3}, {1, 7, 7, 2, 1, 0})}, f64({2}, {10, 20}));
  expect_values(grads[0], {2, 3}, {0, 5, 5, 20, 0, 0});
}

TEST(Max, RejectsAnEmptyChoice) {
  EXPECT_THAT(
      [] {
        max(zeros({2, 0}), {1});
      },
      ThrowsMessage<ShapeError>("max: shape [2, 0] has no elements to choose from"));
  EXPECT_EQ(max(zeros({2, 0}), {0}).shape(), Shape{0});
}

TEST(Min, FindsTheSmallestElement) {
  expect_values(min(kX), {}, {-2});
  expect_values(min(kX, {0}), {3}, {1, -2, 3});
  expect_values(min(kX, {1}, true), {2, 1}, {1, -2});
}

TEST(Min, SplitsTheGradientOfTies) {
  const auto grads = gradients([](auto x) { return min(x[0]); }, {f64({4}, {1, 0, 0, 2})}, f64({}, {10}));
  expect_values(grads[0], {4}, {0, 5, 5, 0});
}

TEST(Min, RejectsAnEmptyChoice) {
  EXPECT_THAT([] { min(zeros({0})); }, ThrowsMessage<ShapeError>("min: shape [0] has no elements to choose from"));
}

}  // namespace
}  // namespace braid::op_tests::max_test
