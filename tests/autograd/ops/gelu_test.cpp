#include <braid/autograd/ops/gelu.h>

#include <tests/autograd/ops/support.h>
#include <numbers>

namespace braid::op_tests::gelu_test {
namespace {

using ::testing::ThrowsMessage;

double tanh_reference(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double erf_reference(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }

TEST(Gelu, MatchesTheFormula) { expect_elementwise(gelu, tanh_reference, -8, 8); }

TEST(Gelu, IsZeroOrTheIdentityFarOut) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const double x : {50.0, 1e15, 1e30}) {
      EXPECT_EQ(value_and_slope(gelu, -x, dtype), std::pair(0.0, 0.0));
      EXPECT_EQ(value_and_slope(gelu, x, dtype).second, 1.0);
      EXPECT_NEAR(value_and_slope(gelu, x, dtype).first / x, 1, 1e-7);
    }
}

TEST(Gelu, PassesNaNOn) {
  EXPECT_TRUE(std::isnan(value_and_slope(gelu, kNaN).first));
  EXPECT_TRUE(std::isnan(value_and_slope(gelu, kNaN).second));
}

TEST(Gelu, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return gelu(x[0]); }, {normal({3, 5})});
  expect_gradients([](auto x) { return gelu(x[0]); }, {f64({4}, {-6, -3, 3, 6})});
}

TEST(Gelu, RejectsIntegers) {
  EXPECT_THAT([] { gelu(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("gelu: expected a floating-point tensor but has dtype i32"));
}

TEST(GeluErf, MatchesTheFormula) { expect_elementwise(gelu_erf, erf_reference, -8, 8); }

TEST(GeluErf, IsExactFarBelowZero) {
  for (const auto& [dtype, least, most] : {std::tuple(DType::f64, -36.0, 1e-14), std::tuple(DType::f32, -12.0, 1e-6)})
    for (double x = least; x < 8; x += 0.0390625) {  // of few bits, so that f32 has the same x
      const double cdf = 0.5 * std::erfc(-x / std::numbers::sqrt2),
                   pdf = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      // What rounding x / sqrt(2) makes of erfc is x^2 roundings; the slope is a difference far below zero.
      const double bound = most * (1 + x * x);
      const auto [y, dx] = value_and_slope(gelu_erf, x, dtype);
      ASSERT_NEAR(y, x * cdf, bound * std::abs(x * cdf)) << x;
      ASSERT_NEAR(dx, cdf + x * pdf, bound * (cdf + std::abs(x * pdf))) << x;
    }
}

TEST(GeluErf, IsZeroOrTheIdentityFarOut) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const double x : {50.0, 0x1p50}) {
      EXPECT_EQ(value_and_slope(gelu_erf, -x, dtype), std::pair(0.0, 0.0));
      EXPECT_EQ(value_and_slope(gelu_erf, x, dtype), std::pair(x, 1.0));
    }
}

TEST(GeluErf, PassesNaNOn) {
  EXPECT_TRUE(std::isnan(value_and_slope(gelu_erf, kNaN).first));
  EXPECT_TRUE(std::isnan(value_and_slope(gelu_erf, kNaN).second));
}

TEST(GeluErf, IsCloseToTheApproximation) {
  const Tensor x = normal({100});
  expect_close(gelu(x).value(), gelu_erf(x).value(), 5e-4);
}

}  // namespace
}  // namespace braid::op_tests::gelu_test
