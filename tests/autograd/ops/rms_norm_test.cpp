#include <braid/autograd/ops/rms_norm.h>

#include <braid/core/reduce.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

namespace braid::op_tests::rms_norm_test {
namespace {

using ::testing::ThrowsMessage;

/// x [rows, C], weight [C] -> [rows, C], by the definition.
Tensor reference(const Tensor& x, const Tensor& weight, double eps) {
  Tensor y(x.shape(), DType::f64);
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    double squares = 0;
    for (std::int64_t c = 0; c < x.size(1); ++c) squares += x.at({i, c}) * x.at({i, c});
    const double rms = std::sqrt(squares / static_cast<double>(x.size(1)) + eps);
    for (std::int64_t c = 0; c < x.size(1); ++c)
      y.mutable_data<double>()[i * x.size(1) + c] = x.at({i, c}) / rms * weight.at({c});
  }
  return y;
}

const auto kWeighted = [](std::span<const Var> x) { return rms_norm(x[0], x[1]); };
const auto kPlain = [](std::span<const Var> x) { return rms_norm(x[0]); };

TEST(RmsNorm, MatchesTheReference) {
  for (const std::int64_t width : {1, 7, 16, 129}) {
    const Tensor x = normal({5, width}, 1), weight = normal({width}, 2);
    expect_close(rms_norm(x, weight).value(), reference(x, weight, 1e-5));
    expect_close(rms_norm(x, weight, 0.5).value(), reference(x, weight, 0.5));
    expect_close(rms_norm(x.to(DType::f32), weight.to(DType::f32)).value(), reference(x, weight, 1e-5), 2e-6);
  }
}

TEST(RmsNorm, WithoutAWeightIsAWeightOfOnes) {
  const Tensor x = normal({5, 9}, 1);
  expect_close(rms_norm(x).value(), reference(x, ones({9}, DType::f64), 1e-5));
  expect_close(rms_norm(x, 0.5).value(), reference(x, ones({9}, DType::f64), 0.5));
}

TEST(RmsNorm, GradientsPassGradcheck) {
  for (const std::int64_t width : {1, 7, 17}) {
    expect_gradients(kWeighted, {normal({2, 3, width}, 1), normal({width}, 2)});
    expect_gradients(kPlain, {normal({3, width}, 1)});
  }
  expect_gradients(kWeighted, {normal({1000, 33}, 1), normal({33}, 2)});  // several blocks of rows
}

TEST(RmsNorm, TakesZeroRows) {
  const std::vector<Tensor> grads = gradients(kWeighted, {normal({0, 4}), normal({4})}, normal({0, 4}));
  EXPECT_EQ(grads[0].shape(), (Shape{0, 4}));
  expect_close(grads[1], zeros({4}, DType::f64));
}

TEST(RmsNorm, GivesTheSameBitsForAnyNumberOfThreads) {
  const std::vector<Tensor> inputs{normal({3000, 40}, 1, DType::f32), normal({40}, 2, DType::f32)};
  const Tensor dy = normal({3000, 40}, 3, DType::f32);
  const WithThreads one(1);
  const std::vector<Tensor> expected = gradients(kWeighted, inputs, dy);
  for (const int threads : {2, 3}) {
    const WithThreads several(threads);
    const std::vector<Tensor> grads = gradients(kWeighted, inputs, dy);
    EXPECT_TRUE(identical(grads[0], expected[0]) && identical(grads[1], expected[1])) << threads << " threads";
  }
}

TEST(RmsNorm, RejectsAWeightThatDoesNotFit) {
  EXPECT_THAT(
      [] {
        rms_norm(normal({2, 3, 8}), normal({7}));
      },
      ThrowsMessage<ShapeError>("rms_norm: weight must have shape [8] to match x [2, 3, 8] but has [7]"));
  EXPECT_THAT([] { rms_norm(normal({2, 8}), normal({8}, 0, DType::f32)); }, ::testing::Throws<DTypeError>());
}

TEST(RmsNorm, RejectsAScalar) {
  EXPECT_THAT([] { rms_norm(normal({})); },
              ThrowsMessage<ShapeError>("rms_norm: x must have at least one axis but has shape []"));
}

}  // namespace
}  // namespace braid::op_tests::rms_norm_test
