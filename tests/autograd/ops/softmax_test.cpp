#include <braid/autograd/ops/softmax.h>

#include <braid/autograd/ops/log.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::softmax_test {
namespace {

using ::testing::ThrowsMessage;

/// softmax of each row of x [rows, n], in long double.
Tensor reference(const Tensor& x) {
  Tensor y(x.shape(), x.dtype());
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    long double largest = -kInfinity, sum = 0;
    for (std::int64_t i = 0; i < x.size(1); ++i) largest = std::max<long double>(largest, x.at({row, i}));
    for (std::int64_t i = 0; i < x.size(1); ++i) sum += std::exp(x.at({row, i}) - largest);
    for (std::int64_t i = 0; i < x.size(1); ++i)
      y.mutable_data<double>()[row * x.size(1) + i] = static_cast<double>(std::exp(x.at({row, i}) - largest) / sum);
  }
  return y;
}

TEST(Softmax, MatchesTheReferenceForRowsOfAnySize) {
  for (const std::int64_t n : {0, 1, 2, 7, 16, 33, 1001}) {
    const Tensor x = normal({3, n});
    expect_close(softmax(x).value(), reference(x), 1e-14);
    expect_close(softmax(x.to(DType::f32)).value(), reference(x), 1e-6);
  }
}

TEST(Softmax, RunsAlongAnyAxes) {
  const Tensor x = normal({4, 5, 6});
  const Tensor columns = x.permute({0, 2, 1}).reshape({24, 5});
  expect_close(softmax(x, 1).value(), reference(columns).reshape({4, 6, 5}).permute({0, 2, 1}));
  const Tensor planes = x.permute({1, 0, 2}).reshape({5, 24});
  expect_close(softmax(x, {2, 0}).value(), reference(planes).reshape({5, 4, 6}).permute({1, 0, 2}));
  expect_close(softmax(x, {}).value(), reference(x.reshape({1, 120})).reshape({4, 5, 6}));
}

TEST(Softmax, LargeArgumentsDoNotOverflow) {
  expect_values(softmax(f64({2, 2}, {1e4, 1e4, -1e300, 0})), {2, 2}, {0.5, 0.5, 0, 1});
}

TEST(Softmax, MinusInfinityGetsNothingUnlessAllAre) {
  expect_values(softmax(f64({3}, {0, -kInfinity, 0})), {3}, {0.5, 0, 0.5});
  for (const double y : softmax(f64({2}, {-kInfinity, -kInfinity})).value().to_vector<double>())
    EXPECT_TRUE(std::isnan(y));
}

TEST(Softmax, NaNSpreadsOverItsRowOnly) {
  const std::vector<double> y = softmax(f64({2, 2}, {kNaN, 0, 0, 0})).value().to_vector<double>();
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], 0.5);
}

TEST(Softmax, GradientsPassGradcheck) {
  for (const std::int64_t n : {1, 2, 7, 33}) expect_gradients([](auto x) { return softmax(x[0]); }, {normal({3, n})});
  expect_gradients([](auto x) { return softmax(x[0], 0); }, {normal({3, 2, 4})});
  expect_gradients([](auto x) { return softmax(x[0], {0, 2}); }, {normal({3, 2, 4})});
}

TEST(Softmax, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads([](auto x) { return softmax(x[0], {0, 2}); }, {normal({50, 60, 70}, 1, DType::f32)});
}

TEST(Softmax, RejectsAnAxisThatIsNotThere) {
  EXPECT_THAT([] { softmax(zeros({2, 3}), 2); }, ThrowsMessage<ShapeError>("softmax: x [2, 3] has no axis 2"));
  EXPECT_THAT(
      [] {
        softmax(zeros({2, 3}), {1, -1});
      },
      ThrowsMessage<ShapeError>("softmax: axis -1 of shape [2, 3] is given twice"));
}

TEST(Softmax, RejectsIntegers) {
  EXPECT_THAT([] { softmax(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("softmax: expected a floating-point tensor but has dtype i32"));
}

TEST(LogSoftmax, IsTheLogarithmOfSoftmax) {
  for (const std::int64_t n : {1, 2, 7, 33}) {
    const Tensor x = normal({3, n});
    expect_close(log_softmax(x).value(), log(reference(x)).value(), 1e-14);
  }
  const Tensor x = normal({4, 5, 6});
  expect_close(log_softmax(x, {0, 1}).value(), log(softmax(x, {0, 1})).value(), 1e-14);
}

TEST(LogSoftmax, KeepsDigitsWhereSoftmaxVanishes) {
  expect_values(log_softmax(f64({3}, {0, -1000, -kInfinity})), {3}, {0, -1000, -kInfinity});
  expect_values(log_softmax(f64({2}, {1e300, 1e300})), {2}, {-std::log(2), -std::log(2)});
}

TEST(LogSoftmax, OfMinusInfinitiesIsNaN) { EXPECT_TRUE(std::isnan(log_softmax(f64({1}, {-kInfinity})).item())); }

TEST(LogSoftmax, GradientsPassGradcheck) {
  for (const std::int64_t n : {1, 2, 7, 33})
    expect_gradients([](auto x) { return log_softmax(x[0]); }, {normal({3, n})});
  expect_gradients([](auto x) { return log_softmax(x[0], {0, 2}); }, {normal({3, 2, 4})});
}

}  // namespace
}  // namespace braid::op_tests::softmax_test
