#include <braid/autograd/ops/layer_norm.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

namespace braid::op_tests::layer_norm_test {
namespace {

using ::testing::ThrowsMessage;

/// x [rows, C], weight [C], bias [C] -> [rows, C], by the definition.
Tensor reference(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  Tensor y(x.shape(), DType::f64);
  const std::int64_t width = x.size(1);
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    double mean = 0, variance = 0;
    for (std::int64_t c = 0; c < width; ++c) mean += x.at({i, c}) / static_cast<double>(width);
    for (std::int64_t c = 0; c < width; ++c) variance += std::pow(x.at({i, c}) - mean, 2) / static_cast<double>(width);
    for (std::int64_t c = 0; c < width; ++c)
      y.mutable_data<double>()[i * width + c] =
          (x.at({i, c}) - mean) / std::sqrt(variance + eps) * weight.at({c}) + bias.at({c});
  }
  return y;
}

const auto kLayerNorm = [](std::span<const Var> x) { return layer_norm(x[0], x[1], x[2]); };

std::vector<Tensor> random_inputs(std::int64_t rows, std::int64_t width, DType dtype = DType::f64) {
  return {normal({rows, width}, 1, dtype), normal({width}, 2, dtype), normal({width}, 3, dtype)};
}

TEST(LayerNorm, MatchesTheReference) {
  for (const std::int64_t width : {1, 7, 16, 129}) {
    const auto x = random_inputs(5, width);
    expect_close(layer_norm(x[0], x[1], x[2]).value(), reference(x[0], x[1], x[2], 1e-5));
    expect_close(layer_norm(x[0], x[1], x[2], 0.5).value(), reference(x[0], x[1], x[2], 0.5));
  }
}

TEST(LayerNorm, KeepsItsPrecisionFarFromZero) {
  const auto x = random_inputs(5, 33, DType::f32);
  Tensor far = x[0].clone();
  for (std::int64_t i = 0; i < far.numel(); ++i) far.mutable_data<float>()[i] += 4096;
  expect_close(layer_norm(far, x[1], x[2]).value(), reference(far, x[1], x[2], 1e-5), 5e-3);  // 4096 * 2^-23 = 5e-4
}

TEST(LayerNorm, GradientsPassGradcheck) {
  for (const std::int64_t width : {2, 7, 17}) expect_gradients(kLayerNorm, random_inputs(3, width));
  expect_gradients(kLayerNorm, random_inputs(1000, 33));  // several blocks of rows
  expect_gradients(kLayerNorm, {normal({2, 3, 5}, 1), normal({5}, 2), normal({5}, 3)});
}

TEST(LayerNorm, GivesTheBiasForRowsOfOneElement) {
  const auto x = random_inputs(3, 1);
  expect_close(layer_norm(x[0], x[1], x[2]).value(), x[2].broadcast_to({3, 1}));
}

TEST(LayerNorm, TakesZeroRows) {
  const auto grads = gradients(kLayerNorm, random_inputs(0, 4), normal({0, 4}));
  EXPECT_EQ(grads[0].shape(), (Shape{0, 4}));
  expect_close(grads[1], zeros({4}, DType::f64));
  expect_close(grads[2], zeros({4}, DType::f64));
}

TEST(LayerNorm, GivesTheSameBitsForAnyNumberOfThreads) {
  const Tensor dy = normal({3000, 40}, 4, DType::f32);
  const WithThreads one(1);
  const auto expected = gradients(kLayerNorm, random_inputs(3000, 40, DType::f32), dy);
  for (const int threads : {2, 3}) {
    const WithThreads several(threads);
    const auto grads = gradients(kLayerNorm, random_inputs(3000, 40, DType::f32), dy);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(identical(grads[i], expected[i])) << threads << " threads";
  }
}

TEST(LayerNorm, RejectsParametersThatDoNotFit) {
  EXPECT_THAT(
      [] {
        layer_norm(normal({2, 3, 8}), normal({7}), normal({8}));
      },
      ThrowsMessage<ShapeError>("layer_norm: weight must have shape [8] to match x [2, 3, 8] but has [7]"));
  EXPECT_THAT(
      [] {
        layer_norm(normal({2, 8}), normal({8}), normal({1, 8}));
      },
      ThrowsMessage<ShapeError>("layer_norm: bias must have shape [8] to match x [2, 8] but has [1, 8]"));
  const Tensor x = zeros({2, 4}, DType::bf16), weight = ones({4}, DType::bf16), bias = zeros({4});
  EXPECT_THAT([&] { layer_norm(x, weight, bias); },
              ThrowsMessage<DTypeError>("layer_norm: inputs must have the same dtype but have bf16 and f32"));
  EXPECT_THAT([] { layer_norm(normal({}), normal({}), normal({})); },
              ThrowsMessage<ShapeError>("layer_norm: x must have at least one axis but has shape []"));
}

TEST(LayerNorm, RunsWithoutParameters) {
  const Tensor x = normal({5, 7}), weight = ones({7}, DType::f64), bias = zeros({7}, DType::f64);
  expect_close(layer_norm(x).value(), reference(x, weight, bias, 1e-5));
  expect_close(layer_norm(x, 0.5).value(), reference(x, weight, bias, 0.5));
  expect_gradients([](auto x) { return layer_norm(x[0]); }, {normal({2, 3, 7})});
  EXPECT_EQ(layer_norm(zeros({0, 4})).shape(), (Shape{0, 4}));
  EXPECT_THAT([] { layer_norm(normal({})); },
              ThrowsMessage<ShapeError>("layer_norm: x must have at least one axis but has shape []"));
}

}  // namespace
}  // namespace braid::op_tests::layer_norm_test
