#include <braid/autograd/ops/maximum.h>

#include <braid/autograd/ops/arithmetic.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::maximum_test {
namespace {

using ::testing::ThrowsMessage;

const auto kMaximum = [](std::span<const Var> x) { return maximum(x[0], x[1]); };
const auto kMinimum = [](std::span<const Var> x) { return minimum(x[0], x[1]); };
const Tensor kA = f64({3}, {1, 5, 2}), kB = f64({2, 1}, {2, 4});

TEST(Maximum, ChoosesTheLargerElement) { expect_values(maximum(kA, kB), {2, 3}, {2, 5, 2, 4, 5, 4}); }

TEST(Maximum, SplitsTheGradientOfTies) {
  const auto grads = gradients(kMaximum, {f64({3}, {1, 2, 3}), f64({3}, {3, 2, 1})}, f64({3}, {10, 10, 10}));
  expect_values(grads[0], {3}, {0, 5, 10});
  expect_values(grads[1], {3}, {10, 5, 0});
}

TEST(Maximum, PassesNaNOn) {
  EXPECT_TRUE(std::isnan(maximum(scalar(kNaN), scalar(1)).item()));
  EXPECT_TRUE(std::isnan(maximum(scalar(1), scalar(kNaN)).item()));
}

TEST(Maximum, TheGradientsAtNaNAreNaN) {
  for (const auto& f : {GradcheckFunction(kMaximum), GradcheckFunction(kMinimum)}) {
    const auto grads = gradients(f, {f64({3}, {kNaN, 1, 1}), f64({3}, {1, kNaN, 2})}, f64({3}, {1, 1, 1}));
    for (const Tensor& grad : grads) {
      EXPECT_TRUE(std::isnan(grad.at({0})) && std::isnan(grad.at({1})));
      EXPECT_FALSE(std::isnan(grad.at({2})));
    }
  }
}

TEST(Maximum, TakesIntegers) {
  expect_values(maximum(i32({3}, {1, -5, 3}), 0), {3}, {1, 0, 3});
  expect_values(minimum(i32({3}, {1, -5, 3}), i32({}, {2})), {3}, {1, -5, 2});
  EXPECT_THAT([] { maximum(i32({1}, {1}), 0.5); },
              ThrowsMessage<ValueError>("maximum: value must be an integer that fits i32 but is 0.5"));
}

TEST(Maximum, RejectsShapesThatDoNotBroadcast) {
  EXPECT_THAT([] { maximum(zeros({2}), zeros({3})); },
              ThrowsMessage<ShapeError>("maximum: shapes [2] and [3] do not broadcast"));
}

TEST(Minimum, ChoosesTheSmallerElement) { expect_values(minimum(kA, kB), {2, 3}, {1, 2, 2, 1, 4, 2}); }

TEST(Minimum, SplitsTheGradientOfTies) {
  const auto grads = gradients(kMinimum, {f64({3}, {1, 2, 3}), f64({3}, {3, 2, 1})}, f64({3}, {10, 10, 10}));
  expect_values(grads[0], {3}, {10, 5, 0});
  expect_values(grads[1], {3}, {0, 5, 10});
}

TEST(Minimum, RejectsMixedDtypes) {
  EXPECT_THAT([] { minimum(zeros({2}), zeros({2}, DType::f64)); },
              ThrowsMessage<DTypeError>("minimum: inputs must have the same dtype but have f32 and f64"));
}

TEST(Maximum, TakesNumbers) {
  expect_values(maximum(kA, 2), {3}, {2, 5, 2});
  expect_values(maximum(2.5, kA), {3}, {2.5, 5, 2.5});
  EXPECT_EQ(maximum(ones({2}), 0.0).dtype(), DType::f32);
  expect_gradients([](auto x) { return maximum(x[0], 0.0) * maximum(0.5, x[0]); }, {f64({3}, {-1, 0.2, 3})});
}

TEST(Minimum, TakesNumbers) {
  expect_values(minimum(kA, 2.0), {3}, {1, 2, 2});
  expect_values(minimum(0, kA), {3}, {0, 0, 0});
  expect_gradients([](auto x) { return minimum(x[0], 1) * minimum(0.5, x[0]); }, {f64({3}, {-1, 0.2, 3})});
}

}  // namespace
}  // namespace braid::op_tests::maximum_test
