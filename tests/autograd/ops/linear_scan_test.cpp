#include <braid/autograd/ops/linear_scan.h>

#include <tests/autograd/ops/support.h>

#include <braid/autograd/ops/cumsum.h>
#include <braid/autograd/ops/flip.h>

namespace braid::op_tests::linear_scan_test {
namespace {

TEST(LinearScan, FollowsTheRecurrence) {
  const Tensor a = f64({3, 2}, {9, 9, 2, -1, 3, 0.5}), b = f64({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_values(linear_scan(a, b, 0), {3, 2}, {1, 2, 5, 2, 20, 7});
  expect_values(linear_scan(a, b, 1), {3, 2}, {1, 11, 3, 1, 5, 8.5});
  expect_values(linear_scan(f64({2}, {10, 100}), b, 0), {3, 2}, {1, 2, 13, 204, 135, 20406});
}

TEST(LinearScan, IsStepByStepWhateverTheSizes) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 300, 1}, Shape{3, 7, 70}, Shape{1, 5, 1003}, Shape{2, 1, 4}})
    for (const int axis : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("{} along {}", shape, axis));
      const Tensor a = normal(shape, 1), b = normal(shape, 2), h = linear_scan(a, b, axis).value();
      Tensor before = zeros(b.select(axis, 0).shape(), DType::f64);
      for (std::int64_t i = 0; i < shape[axis]; ++i) {
        before = map(
            "step", [](auto a, auto h, auto b) { return a * h + b; }, a.select(axis, i), before, b.select(axis, i));
        expect_close(h.select(axis, i), before, 1e-13);
      }
    }
}

TEST(LinearScan, WithOnesIsTheRunningSum) {
  const Tensor b = normal({2, 40, 3}, 1);
  expect_close(linear_scan(ones({1}, DType::f64), b, 1).value(), cumsum(b, 1).value());
}

TEST(LinearScan, HasGradientsOfAnyOrderAlongEveryAxis) {
  for (const int axis : {0, 1, 2, -1}) {
    expect_gradients([=](auto v) { return linear_scan(v[0], v[1], axis); },
                     {normal({2, 4, 3}, 1), normal({2, 4, 3}, 2)});
    expect_gradients([=](auto v) { return linear_scan(v[0], v[1], axis); }, {normal({4, 1}, 1), normal({2, 1, 3}, 2)});
  }
}

TEST(LinearScan, ReadsAnyLayoutAndTakesBf16) {
  const Tensor a = normal({5, 4}, 1), b = normal({5, 4}, 2);
  expect_close(linear_scan(a.transpose().clone().transpose(), b.transpose().clone().transpose(), 0).value(),
               linear_scan(a, b, 0).value());
  const Var narrow = linear_scan(a.to(DType::bf16), b.to(DType::bf16), 0);
  EXPECT_EQ(narrow.dtype(), DType::bf16);
  expect_close(narrow.value().to(DType::f64),
               linear_scan(a.to(DType::bf16).to(DType::f64), b.to(DType::bf16).to(DType::f64), 0).value(), 0.01);
}

TEST(LinearScan, TakesNoStepsAndNoLanes) {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{0}})
    EXPECT_EQ(linear_scan(zeros(shape), zeros(shape), 0).shape(), shape);
}

TEST(LinearScan, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads([](auto v) { return linear_scan(v[0], v[1], 1); },
                                  {normal({3, 90, 400}, 1, DType::f32), normal({3, 90, 400}, 2, DType::f32)});
}

TEST(LinearScan, NamesWhatDoesNotFit) {
  EXPECT_THROW(linear_scan(zeros({2}), zeros({3}), 0), ShapeError);
  EXPECT_THROW(linear_scan(zeros({3}), zeros({3}), 1), ShapeError);
  EXPECT_THROW(linear_scan(zeros({3}, DType::f64), zeros({3}), 0), DTypeError);
  EXPECT_THROW(linear_scan(zeros({3}, DType::i32), zeros({3}, DType::i32), 0), DTypeError);
}

}  // namespace
}  // namespace braid::op_tests::linear_scan_test
