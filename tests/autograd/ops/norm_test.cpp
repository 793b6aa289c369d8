#include <braid/autograd/ops/norm.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

namespace braid::op_tests::norm_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Norm, IsTheRootOfTheSumOfSquares) {
  const Tensor x = f64({2, 2}, {3, 4, -5, 12});
  expect_values(norm(x, 1), {2}, {5, 13});
  expect_values(norm(x, 0, true), {1, 2}, {std::sqrt(34), std::sqrt(160)});
  EXPECT_NEAR(norm(x).item(), std::sqrt(194), 1e-14);
  for (const std::int64_t n : {1, 7, 10000}) {
    const Tensor y = normal({n}, 1);
    double sum = 0;
    for (const double v : y.to_vector<double>()) sum += v * v;
    EXPECT_NEAR(norm(y).item(), std::sqrt(sum), 1e-13 * std::sqrt(sum));
    EXPECT_NEAR(norm(y.to(DType::f32)).item(), std::sqrt(sum), 1e-6 * std::sqrt(sum));
  }
}

TEST(Norm, NeitherOverflowsNorUnderflows) {
  for (const double scale : {1e200, 1e-200, 1e-310, 3e307}) {
    EXPECT_NEAR(norm(f64({2}, {3 * scale, -4 * scale})).item() / scale, 5, 1e-13);
    expect_close(gradients([](auto x) { return norm(x[0]); }, {f64({2}, {3 * scale, -4 * scale})}, f64({}, {1}))[0],
                 f64({2}, {0.6, -0.8}));
  }
  EXPECT_NEAR(norm(full({4}, 1e30)).item(), 2e30, 1e24);
}

TEST(Norm, OfNothingAndOfZerosIsZero) {
  EXPECT_EQ(norm(zeros({0})).item(), 0);
  expect_values(norm(zeros({2, 0}, DType::f64), 1), {2}, {0, 0});
  EXPECT_EQ(norm(zeros({0, 2}), 1).shape(), (Shape{0}));
  EXPECT_EQ(norm(zeros({3})).item(), 0);
}

TEST(Norm, PropagatesInfinityAndNaN) {
  EXPECT_EQ(norm(f64({3}, {1, -kInfinity, 2})).item(), kInfinity);
  EXPECT_TRUE(std::isnan(norm(f64({3}, {kInfinity, kNaN, 2})).item()));
}

TEST(Norm, HasAGradientOfZeroAtZero) {
  expect_close(gradients([](auto x) { return norm(x[0], 1); }, {f64({2, 2}, {0, 0, 3, 4})}, f64({2}, {1, 1}))[0],
               f64({2, 2}, {0, 0, 0.6, 0.8}));
}

TEST(Norm, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads([](auto x) { return norm(x[0]); }, {normal({60, 1000}, 1, DType::f32)});
}

TEST(Norm, NamesItselfInErrors) {
  EXPECT_THAT([] { norm(normal({2}), 1); }, ThrowsMessage<ShapeError>("norm: x [2] has no axis 1"));
  EXPECT_THAT([] { norm(zeros({0}), {0, 0}); }, ThrowsMessage<ShapeError>("norm: axis 0 of shape [0] is given twice"));
  EXPECT_THAT([] { norm(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("norm: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::norm_test
