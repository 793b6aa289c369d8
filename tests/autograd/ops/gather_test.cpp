#include <braid/autograd/ops/gather.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::gather_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

/// Ids of any shape, the same each time, in [0, size).
Tensor ids_of(const Shape& shape, std::int64_t size) {
  Rng rng(5);
  return randint(0, size, shape, rng);
}

TEST(Gather, TakesOneElementForEachId) {
  expect_values(gather(kX, 1, i32({2, 2}, {2, 0, 1, 1})), {2, 2}, {3, 1, 5, 5});
  expect_values(gather(kX, 0, i32({1, 3}, {1, 0, 1})), {1, 3}, {4, 2, 6});
  expect_values(gather(kX.transpose(), -2, i32({1, 2}, {2, 0})), {1, 2}, {3, 4});
}

TEST(Gather, CountsNegativeIdsFromTheEnd) {
  expect_values(gather(kX, 1, i32({2, 2}, {-1, 0, 1, -3})), {2, 2}, {3, 1, 5, 4});
  const auto grads = gradients(
      [](auto x) {
        return gather(x[0], 1, i32({2, 2}, {-1, 2, 0, -3}));
      },
      {kX}, f64({2, 2}, {1, 2, 3, 4}));
  expect_values(grads[0], {2, 3}, {0, 0, 3, 7, 0, 0});
}

TEST(Gather, TakesIntegers) { expect_values(gather(i32({3}, {7, 8, 9}), 0, i32({2}, {2, 0})), {2}, {9, 7}); }

TEST(Gather, RepeatedIdsAddTheirGradients) {
  const auto grads = gradients(
      [](auto x) {
        return gather(x[0], 1, i32({2, 2}, {1, 1, 0, 2}));
      },
      {kX}, f64({2, 2}, {1, 2, 3, 4}));
  expect_values(grads[0], {2, 3}, {0, 3, 0, 3, 0, 4});
}

TEST(Gather, GradientsPassGradcheck) {
  for (const int axis : {0, 1, -1}) {
    const Tensor ids = ids_of(Shape{2, 3, 4}.with(axis, 5), Shape{2, 3, 4}[axis]);
    expect_gradients([&](auto x) { return gather(x[0], axis, ids); }, {normal({2, 3, 4})});
  }
}

TEST(Gather, RejectsIdsThatDoNotFit) {
  EXPECT_THAT(
      [] {
        gather(kX, 1, i32({1, 2}, {0, 0}));
      },
      ThrowsMessage<ShapeError>("gather: ids must have the shape of x [2, 3] except along axis 1 but have [1, 2]"));
  EXPECT_THAT(
      [] {
        gather(kX, 0, i32({1, 3}, {0, 2, 0}));
      },
      ThrowsMessage<ValueError>("gather: ids must lie in [-2, 2) but the one at [0, 1] is 2"));
  EXPECT_THAT(
      [] {
        gather(kX, 0, zeros({1, 3}));
      },
      ThrowsMessage<DTypeError>("gather: ids must have dtype i32 but have f32"));
}

TEST(ScatterAdd, AddsAtTheIds) {
  expect_values(scatter_add(kX, 1, i32({2, 2}, {1, 1, 0, 2}), f64({2, 2}, {10, 20, 30, 40})), {2, 3},
                {1, 32, 3, 34, 5, 46});
  expect_values(scatter_add(kX, 0, i32({1, 3}, {1, 0, 1}), f64({1, 3}, {10, 20, 30})), {2, 3}, {1, 22, 3, 14, 5, 36});
}

TEST(ScatterAdd, CountsNegativeIdsFromTheEnd) {
  expect_values(scatter_add(kX, 1, i32({2, 1}, {-1, -3}), f64({2, 1}, {10, 20})), {2, 3}, {1, 2, 13, 24, 5, 6});
}

TEST(ScatterAdd, LeavesItsInputAlone) {
  const Tensor x = zeros({2}, DType::f64);
  scatter_add(x, 0, i32({1}, {0}), f64({1}, {1}));
  expect_values(x, {2}, {0, 0});
}

TEST(ScatterAdd, GradientsPassGradcheck) {
  for (const int axis : {0, 1, -1}) {
    const Shape shape = Shape{2, 3, 4}.with(axis, 5);
    const Tensor ids = ids_of(shape, Shape{2, 3, 4}[axis]);
    expect_gradients([&](auto x) { return scatter_add(x[0], axis, ids, x[1]); },
                     {normal({2, 3, 4}, 1), normal(shape, 2)});
  }
}

TEST(ScatterAdd, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const int axis : {0, 1}) {
    const Shape shape = Shape{10, 10, 200}.with(axis, 300);
    const Tensor ids = ids_of(shape, 10);
    expect_same_bits_on_any_threads([&](auto x) { return scatter_add(x[0], axis, ids, x[1]); },
                                    {normal({10, 10, 200}, 1, DType::f32), normal(shape, 2, DType::f32)});
  }
}

TEST(ScatterAdd, RejectsASourceThatDoesNotFit) {
  EXPECT_THAT(
      [] {
        scatter_add(kX, 1, i32({2, 1}, {0, 0}), zeros({2, 2}, DType::f64));
      },
      ThrowsMessage<ShapeError>("scatter_add: src must have the shape [2, 1] of ids but has [2, 2]"));
  EXPECT_THAT(
      [] {
        scatter_add(kX, 1, i32({2, 1}, {0, 0}), zeros({2, 1}));
      },
      ThrowsMessage<DTypeError>("scatter_add: inputs must have the same dtype but have f64 and f32"));
}

}  // namespace
}  // namespace braid::op_tests::gather_test
