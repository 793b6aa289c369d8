#include <braid/autograd/ops/where.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::where_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kMask = i32({3}, {1, 0, -2});

TEST(Where, ChoosesByTheMask) {
  const Tensor a = f64({3}, {1, 2, 3}), b = f64({2, 1}, {10, 20});
  expect_values(where(kMask, a, b), {2, 3}, {1, 10, 3, 1, 20, 3});
  expect_values(where(kMask.to(DType::f32), a, b), {2, 3}, {1, 10, 3, 1, 20, 3});
}

TEST(Where, TakesIntegersAndAMaskCloseToZero) {
  expect_values(where(f64({2}, {0.5, 0}), i32({2}, {1, 2}), i32({}, {7})), {2}, {1, 7});
  expect_values(where(f64({2}, {1e-300, -0.0}), ones({2}), 7), {2}, {1, 7});
  expect_values(where(f64({1}, {kNaN}), ones({1}), 7), {1}, {1});
  EXPECT_EQ(where(kMask, kMask, 3).dtype(), DType::i32);
}

TEST(Where, BroadcastsTheMask) {
  expect_values(where(i32({2, 1}, {0, 1}), f64({1}, {1}), f64({3}, {5, 6, 7})), {2, 3}, {5, 6, 7, 1, 1, 1});
}

TEST(Where, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return where(kMask, x[0], x[1]); }, {normal({2, 3}, 1), normal({3}, 2)});
  expect_gradients([](auto x) { return where(kMask, x[0], x[1]); }, {normal({}, 1), normal({2, 1}, 2)});
}

TEST(Where, NaNThatIsNotChosenDoesNoHarm) {
  const auto grads = gradients([](auto x) { return where(kMask, x[0], x[1]); },
                               {f64({3}, {1, kNaN, 3}), f64({3}, {kNaN, 2, kNaN})}, f64({3}, {1, 2, 3}));
  expect_values(grads[0], {3}, {1, 0, 3});
  expect_values(grads[1], {3}, {0, 2, 0});
}

TEST(Where, RejectsShapesThatDoNotBroadcastAndMixedDtypes) {
  EXPECT_THAT([] { where(kMask, zeros({2}), zeros({2})); },
              ThrowsMessage<ShapeError>("where: shapes [3] and [2] do not broadcast"));
  EXPECT_THAT([] { where(kMask, zeros({3}), zeros({3}, DType::f64)); },
              ThrowsMessage<DTypeError>("where: inputs must have the same dtype but have f32 and f64"));
}

TEST(Where, TakesNumbers) {
  const Tensor x = f64({3}, {5, 6, 7});
  expect_values(where(kMask, x, 0), {3}, {5, 0, 7});
  expect_values(where(kMask, 0.5, x), {3}, {0.5, 6, 0.5});
  EXPECT_EQ(where(kMask, ones({3}), 0.0).dtype(), DType::f32);
  expect_gradients([](auto x) { return where(kMask, x[0], 0.0); }, {x});
  expect_gradients([](auto x) { return where(kMask, 1, x[0]); }, {x});
}

TEST(Where, OfTwoNumbersIsTheMaskAsNumbers) {
  expect_values(where(kMask, 1.0, 0.0), {3}, {1, 0, 1});
  expect_values(where(kMask, 2, -1, DType::i32), {3}, {2, -1, 2});
  EXPECT_EQ(where(kMask, 1.0, 0.0).dtype(), DType::f32);
  EXPECT_EQ(where(kMask, 1, 0, DType::i32).dtype(), DType::i32);
  EXPECT_THAT([] { where(kMask, 0.5, 0, DType::i32); },
              ThrowsMessage<ValueError>("where: value must be an integer that fits i32 but is 0.5"));
}

}  // namespace
}  // namespace braid::op_tests::where_test
