#include <braid/autograd/ops/slice.h>

#include <braid/autograd/ops/transpose.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::slice_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Slice, ShowsPartOfAnAxis) {
  expect_values(slice(kX, 1, 1, 3), {2, 2}, {2, 3, 5, 6});
  expect_values(slice(kX, -1, -3, -1), {2, 2}, {1, 2, 4, 5});
  EXPECT_EQ(slice(kX, 0, 1, 1).shape(), (Shape{0, 3}));
}

TEST(Slice, TakesEveryStepThPosition) {
  expect_values(slice(kX, 1, 0, 3, 2), {2, 2}, {1, 3, 4, 6});
  expect_values(slice(kX, 1, 2, 0, -1), {2, 2}, {3, 2, 6, 5});
  expect_values(slice(kX, 1, -1, -4, -2), {2, 2}, {3, 1, 6, 4});
  const auto grads = gradients([](auto x) { return slice(x[0], 1, -1, -4, -2); }, {kX}, f64({2, 2}, {1, 2, 3, 4}));
  expect_values(grads[0], {2, 3}, {2, 0, 1, 4, 0, 3});
}

TEST(Slice, GradientsOfStepsPassGradcheck) {
  for (const int axis : {0, 1, 2})
    for (const std::int64_t step : {2, 3, 7}) {
      expect_gradients([=](auto x) { return slice(x[0], axis, 1, 4, step); }, {normal({4, 5, 4})});
      expect_gradients([=](auto x) { return transpose(slice(x[0], axis, 3, 0, -step)); }, {normal({4, 5, 4})});
    }
}

TEST(Slice, TheGradientIsZeroElsewhere) {
  const auto grads = gradients([](auto x) { return slice(x[0], 1, 1, 2); }, {kX}, f64({2, 1}, {7, 8}));
  expect_values(grads[0], {2, 3}, {0, 7, 0, 0, 8, 0});
}

TEST(Slice, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return slice(x[0], 0, 1, 2); }, {normal({3, 4, 2})});
  expect_gradients([](auto x) { return slice(x[0], 1, -3, -1); }, {normal({3, 4, 2})});
  expect_gradients([](auto x) { return transpose(slice(transpose(x[0]), 2, 0, 2), 0, 1); }, {normal({3, 4, 2})});
}

TEST(Slice, TheGradientOfNothingIsZero) {
  const auto grads = gradients([](auto x) { return slice(x[0], 1, 2, 2); }, {kX}, zeros({2, 0}, DType::f64));
  expect_values(grads[0], {2, 3}, {0, 0, 0, 0, 0, 0});
}

TEST(Slice, RejectsPositionsOutsideTheAxis) {
  EXPECT_THAT([] { slice(kX, 1, 1, 4); },
              ThrowsMessage<ShapeError>("slice: [1, 4) is not inside axis 1 of shape [2, 3]"));
  EXPECT_THAT([] { slice(kX, 1, 0, 2, 0); }, ThrowsMessage<ValueError>("slice: step must not be 0"));
  EXPECT_THAT([] { slice(kX, 2, 0, 1); }, ThrowsMessage<ShapeError>("slice: x [2, 3] has no axis 2"));
}

TEST(Select, TakesOnePositionOfAnAxis) {
  expect_values(select(kX, 1, 0), {2}, {1, 4});
  expect_values(select(kX, -1, -1), {2}, {3, 6});
  expect_values(Var(kX)[1], {3}, {4, 5, 6});
  expect_values(Var(kX)[-2][0], {}, {1});
}

TEST(Select, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return select(x[0], 1, -2); }, {normal({3, 4, 2})});
  expect_gradients([](auto x) { return select(transpose(x[0]), -1, 1); }, {normal({3, 4, 2})});
  expect_gradients([](auto x) { return x[0][0][-1]; }, {normal({3, 4})});
}

TEST(Select, TheGradientIsZeroElsewhere) {
  const auto grads = gradients([](auto x) { return x[0][-1]; }, {kX}, f64({3}, {7, 8, 9}));
  expect_values(grads[0], {2, 3}, {0, 0, 0, 7, 8, 9});
}

TEST(Select, RejectsPositionsOutsideTheAxis) {
  EXPECT_THAT([] { Var{kX}[5]; }, ThrowsMessage<ShapeError>("select: x [2, 3] has no position 5 on axis 0"));
  EXPECT_THAT([] { select(kX, -1, -4); }, ThrowsMessage<ShapeError>("select: x [2, 3] has no position -4 on axis -1"));
  EXPECT_THAT([] { select(kX, 2, 0); }, ThrowsMessage<ShapeError>("select: x [2, 3] has no axis 2"));
  EXPECT_THAT([] { Var{scalar(1)}[0]; }, ThrowsMessage<ShapeError>("select: x [] has no axis 0"));
}

}  // namespace
}  // namespace braid::op_tests::slice_test
