#include <braid/autograd/ops/causal_attention.h>

#include <braid/core/parallel.h>

#include <tests/autograd/ops/support.h>
#include <cmath>
#include <limits>

namespace braid {
namespace {

using testing::expect_close;
using testing::expect_gradients;
using testing::gradients;
using testing::normal;
using ::testing::ThrowsMessage;

/// The weights of the keys 0..t for query t of one head.
std::vector<double> probabilities(const Tensor& q, const Tensor& k, std::int64_t b, std::int64_t t, std::int64_t h) {
  std::vector<double> p(static_cast<std::size_t>(t + 1));
  double total = 0;
  for (std::int64_t s = 0; s <= t; ++s) {
    double dot = 0;
    for (std::int64_t i = 0; i < q.size(3); ++i) dot += q.at({b, t, h, i}) * k.at({b, s, h, i});
    total += p[static_cast<std::size_t>(s)] = std::exp(dot / std::sqrt(static_cast<double>(q.size(3))));
  }
  for (double& weight : p) weight /= total;
  return p;
}

/// q, k, v [B, T, H, D], by the definition.
Tensor reference(const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor y = zeros(q.shape(), DType::f64);
  double* out = y.mutable_data<double>();
  for (std::int64_t b = 0; b < q.size(0); ++b)
    for (std::int64_t t = 0; t < q.size(1); ++t)
      for (std::int64_t h = 0; h < q.size(2); ++h, out += q.size(3)) {
        const std::vector<double> p = probabilities(q, k, b, t, h);
        for (std::int64_t s = 0; s <= t; ++s)
          for (std::int64_t i = 0; i < q.size(3); ++i) out[i] += p[static_cast<std::size_t>(s)] * v.at({b, s, h, i});
      }
  return y;
}

std::vector<Tensor> random_inputs(const Shape& shape, DType dtype = DType::f64) {
  return {normal(shape, 1, dtype), normal(shape, 2, dtype), normal(shape, 3, dtype)};
}

const auto kAttention = [](std::span<const Var> x) { return causal_attention(x[0], x[1], x[2]); };

// Lengths around the blocks of 64 rows and their tiles, depths around vectors.
class CausalAttention : public ::testing::TestWithParam<Shape> {};

TEST_P(CausalAttention, MatchesTheReference) {
  const auto x = random_inputs(GetParam());
  const Tensor expected = reference(x[0], x[1], x[2]);
  expect_close(causal_attention(x[0], x[1], x[2]).value(), expected);
  const auto single = [](const Tensor& t) { return t.to(DType::f32); };
  expect_close(causal_attention(single(x[0]), single(x[1]), single(x[2])).value(), expected, 3e-6);
}

TEST_P(CausalAttention, GradientsPassGradcheck) { expect_gradients(kAttention, random_inputs(GetParam())); }

TEST_P(CausalAttention, GradientsInF32MatchThoseInF64) {
  const Tensor dy = normal(GetParam(), 4);
  const auto expected = gradients(kAttention, random_inputs(GetParam()), dy);
  std::vector<Tensor> x = random_inputs(GetParam());
  for (Tensor& input : x) input = input.to(DType::f32);
  const auto grads = gradients(kAttention, x, dy.to(DType::f32));
  for (std::size_t i = 0; i < 3; ++i) expect_close(grads[i], expected[i], 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CausalAttention,
                         ::testing::Values(Shape{1, 1, 1, 1}, Shape{2, 3, 2, 5}, Shape{1, 17, 4, 4},
                                           Shape{2, 33, 3, 16}, Shape{1, 64, 1, 32}, Shape{1, 65, 2, 7},
                                           Shape{1, 131, 1, 20}, Shape{17, 130, 1, 3}, Shape{1, 300, 1, 8}));

TEST(CausalAttentionOp, LooksAtThePastOnly) {
  auto x = random_inputs({1, 100, 2, 8}, DType::f32);
  const Tensor before = causal_attention(x[0], x[1], x[2]).value();
  for (const std::size_t input : {1, 2}) {
    Tensor changed = x[input].clone();
    std::fill_n(changed.mutable_data<float>() + 70 * 16, 30 * 16, 1e6f);
    x[input] = changed;
  }
  const Tensor after = causal_attention(x[0], x[1], x[2]).value();
  EXPECT_TRUE(identical(before.slice(1, 0, 70), after.slice(1, 0, 70)));
  EXPECT_FALSE(identical(before.slice(1, 70, 71), after.slice(1, 70, 71)));
}

TEST(CausalAttentionOp, SurvivesLargeScores) {
  const Tensor q = full({1, 3, 1, 4}, 1000), v = normal({1, 3, 1, 4}, 1, DType::f32);
  expect_close(causal_attention(q, q, v).value().slice(1, 1, 2), (Var(v).value().slice(1, 0, 1)).clone(), 10);
  for (const Tensor& grad : gradients(kAttention, {q, q, v}, v))
    for (const double g : grad.to_vector<double>()) EXPECT_TRUE(std::isfinite(g));
}

TEST(CausalAttentionOp, PropagatesNaN) {
  for (std::size_t input = 0; input < 3; ++input) {
    auto x = random_inputs({1, 70, 1, 8}, DType::f32);
    x[input].mutable_data<float>()[66 * 8] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(causal_attention(x[0], x[1], x[2]).value().at({0, 66, 0, 0})));
    EXPECT_FALSE(std::isnan(causal_attention(x[0], x[1], x[2]).value().at({0, 60, 0, 0})));
  }
}

TEST(CausalAttentionOp, TakesZeroSizes) {
  for (const Shape& shape : {Shape{0, 3, 2, 4}, Shape{2, 0, 2, 4}, Shape{2, 3, 0, 4}, Shape{2, 3, 2, 0}}) {
    const auto grads = gradients(kAttention, random_inputs(shape), normal(shape, 4));
    for (const Tensor& grad : grads) EXPECT_EQ(grad.shape(), shape);
  }
}

TEST(CausalAttentionOp, GivesTheSameBitsForAnyNumberOfThreads) {
  const Shape shape{2, 200, 2, 16};
  const Tensor dy = normal(shape, 4, DType::f32);
  const int before = num_threads();
  set_num_threads(1);
  const auto expected = gradients(kAttention, random_inputs(shape, DType::f32), dy);
  for (const int threads : {2, 3}) {
    set_num_threads(threads);
    const auto grads = gradients(kAttention, random_inputs(shape, DType::f32), dy);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(identical(grads[i], expected[i])) << threads << " threads";
  }
  set_num_threads(before);
}

TEST(CausalAttentionOp, RejectsShapesThatDiffer) {
  EXPECT_THAT(
      [] {
        causal_attention(normal({3, 2, 4}), normal({3, 2, 4}), normal({3, 2, 4}));
      },
      ThrowsMessage<ShapeError>("causal_attention: q must have shape [B, T, H, D] but has [3, 2, 4]"));
  EXPECT_THAT(
      [] {
        causal_attention(normal({1, 3, 2, 4}), normal({1, 3, 2, 5}), normal({1, 3, 2, 4}));
      },
      ThrowsMessage<ShapeError>("causal_attention: k must have shape [1, 3, 2, 4] to match q but has [1, 3, 2, 5]"));
  EXPECT_THAT(
      [] {
        causal_attention(normal({1, 3, 2, 4}), normal({1, 3, 2, 4}), normal({1, 2, 2, 4}));
      },
      ThrowsMessage<ShapeError>("causal_attention: v must have shape [1, 3, 2, 4] to match q but has [1, 2, 2, 4]"));
}

}  // namespace
}  // namespace braid
