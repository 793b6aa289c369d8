#include <braid/autograd/ops/slice.h>

#include <functional>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/autograd/profile.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/reduce.h>
#include <braid/core/storage.h>
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

/// Views of x that overlap, and x itself, each with a weight of its own.
Var weighted_views(const Var& x) {
  return sum(x * x) + 2 * sum(x[1]) + 3 * sum(slice(x, 1, 0, 3, 2) * slice(x, 1, 0, 3, 2)) + 5 * sum(select(x, 1, -1)) +
         7 * sum(slice(transpose(x), 0, 2, 0, -1)) + 11 * sum(slice(x, 0, 1, 1));
}

TEST(Views, TheirCotangentsAddUpInTheGradient) {
  const auto grads = gradients([](auto x) { return weighted_views(x[0]); }, {kX}, f64({}, {1}));
  expect_values(grads[0], {2, 3}, {2 + 6, 4 + 7, 6 + 18 + 5 + 7, 8 + 2 + 24, 10 + 2 + 7, 12 + 2 + 36 + 5 + 7});
  expect_gradients([](auto x) { return weighted_views(x[0]); }, {normal({2, 3})});
}

TEST(Views, LeaveOtherHoldersOfTheGradientAlone) {
  // add gives both inputs one cotangent, to which the view of the first adds.
  const auto f = [](auto x) { return x[0] + x[1] + x[0][1]; };
  const Tensor dy = f64({2, 3}, {1, 1, 1, 1, 1, 1});
  const auto grads = gradients(f, {kX, kX}, dy);
  expect_values(grads[0], {2, 3}, {1, 1, 1, 3, 3, 3});
  expect_values(grads[1], {2, 3}, {1, 1, 1, 1, 1, 1});
  expect_values(dy, {2, 3}, {1, 1, 1, 1, 1, 1});
}

TEST(Views, HaveTheGradientThatAProbeSees) {
  struct Observer : Probe {};
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Rng rng(3);
    const Var x = randn({5, 40, 3}, rng).to(dtype);
    const auto loss = [](const Var& x) {
      Var y = sum(x * x);
      for (std::int64_t t = 0; t < 40; ++t) y += sum(select(x, 1, t) * select(x, 1, t / 2)) / double(t + 1);
      return y;
    };
    Observer observer;
    const Tensor in_place = value_and_grad(loss)(x).second.value();
    EXPECT_TRUE(identical(in_place, value_and_grad(loss, &observer)(x).second.value())) << name(dtype);
    EXPECT_GT(reduce_max(in_place.to(DType::f64)).item(), 0);
  }
}

/// The bytes of all tensors that `run` makes.
std::int64_t allocated(const std::function<void()>& run) {
  const std::int64_t before = memory_stats().total_bytes;
  run();
  return memory_stats().total_bytes - before;
}

// A gradient of x's size at each step would take four times as many bytes for twice as many steps.
TEST(Views, StepsOfALoopCostTheSameHoweverManyThereAre) {
  const auto loop = [](const Var& x) {
    Var h = scalar(0, DType::f64);
    for (std::int64_t t = 0; t < x.size(0); ++t) h = 0.5 * h + (t % 2 == 0 ? x[t] : squeeze(slice(x, 0, t, t + 1), 0));
    return h;
  };
  Profile profile;
  const std::vector<std::function<Var(const Var&)>> derivatives{
      [&](const Var& x) { return value_and_grad(loop)(x).second; },
      [&](const Var& x) { return value_and_grad(loop, &profile)(x).second; },
      [&](const Var& x) { return hvp([&](const Var& x) { return loop(x * x) / 2; }, x, x); },
  };
  for (const auto& derivative : derivatives) {
    const Tensor x = ones({500}, DType::f64), twice = ones({1000}, DType::f64);
    EXPECT_EQ(derivative(x).value().at({-2}), 0.5);
    EXPECT_LT(allocated([&] { derivative(twice); }), 3 * allocated([&] { derivative(x); }));
  }
}

}  // namespace
}  // namespace braid::op_tests::slice_test
