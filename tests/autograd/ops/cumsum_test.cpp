#include <braid/autograd/ops/cumsum.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

#include <braid/core/reduce.h>

namespace braid::op_tests::cumsum_test {
namespace {

using ::testing::ThrowsMessage;

TEST(CumSum, AddsUpAlongAnAxis) {
  const Tensor x = f64({2, 3}, {1, 2, 3, 10, 20, 30});
  expect_values(cumsum(x), {2, 3}, {1, 3, 6, 10, 30, 60});
  expect_values(cumsum(x, 0), {2, 3}, {1, 2, 3, 11, 22, 33});
  expect_values(cumsum(x.transpose(), 0), {3, 2}, {1, 10, 3, 30, 6, 60});
}

TEST(CumSum, EndsWithTheSum) {
  for (const std::int64_t n : {1, 5, 4099}) {
    const Tensor x = normal({3, n, 2}, 1), y = cumsum(x, 1).value();
    expect_close(y.select(1, -1), reduce_sum(x, {1}), 1e-11);
    expect_close(y.select(1, 0), x.select(1, 0), 0);
  }
  EXPECT_EQ(cumsum(normal({2, 0}), 1).shape(), (Shape{2, 0}));
  EXPECT_EQ(cumsum(normal({0, 3}), 1).shape(), (Shape{0, 3}));
}

TEST(CumSum, SumsSinglesInDouble) {
  const Tensor x = full({1 << 20}, 0.1F);
  EXPECT_EQ(cumsum(x).value().at({-1}), 0.1F * (1 << 20));  // exact: a power of two times the element
}

TEST(CumSum, GivesEachElementTheCotangentsFromItsOwnOn) {
  expect_close(gradients([](auto x) { return cumsum(x[0]); }, {normal({3})}, f64({3}, {1, 10, 100}))[0],
               f64({3}, {111, 110, 100}));
  for (const int axis : {0, 1, 2}) expect_gradients([=](auto x) { return cumsum(x[0], axis); }, {normal({2, 3, 4}, 1)});
}

TEST(CumSum, PropagatesNaNForward) {
  const std::vector<double> y = cumsum(f64({3}, {1, kNaN, 2})).value().to_vector<double>();
  EXPECT_EQ(y[0], 1);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
}

TEST(CumSum, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads([](auto x) { return cumsum(x[0], 0); }, {normal({50, 3000}, 1, DType::f32)});
}

TEST(CumSum, RejectsAnAxisThatIsNotThereAndIntegers) {
  EXPECT_THAT([] { cumsum(normal({2, 3}), -3); }, ThrowsMessage<ShapeError>("cumsum: x [2, 3] has no axis -3"));
  EXPECT_THAT([] { cumsum(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("cumsum: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::cumsum_test
