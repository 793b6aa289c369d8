#include <braid/autograd/ops/rotary_embedding.h>

#include <braid/autograd/ops/arithmetic.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

namespace braid::op_tests::rotary_embedding_test {
namespace {

using ::testing::ThrowsMessage;

/// x [B, T, H, D], by the definition.
Tensor reference(const Tensor& x, double base, std::int64_t offset) {
  Tensor y(x.shape(), DType::f64);
  double* out = y.mutable_data<double>();
  for (std::int64_t b = 0; b < x.size(0); ++b)
    for (std::int64_t t = 0; t < x.size(1); ++t)
      for (std::int64_t h = 0; h < x.size(2); ++h)
        for (std::int64_t i = 0; i < x.size(3); i += 2) {
          const double frequency = std::pow(base, -static_cast<double>(i) / static_cast<double>(x.size(3)));
          const double angle = static_cast<double>(offset + t) * frequency;
          const double a = x.at({b, t, h, i}), c = x.at({b, t, h, i + 1});
          *out++ = a * std::cos(angle) - c * std::sin(angle);
          *out++ = a * std::sin(angle) + c * std::cos(angle);
        }
  return y;
}

const auto kRotary = [](std::span<const Var> x) { return rotary_embedding(x[0]); };

TEST(RotaryEmbedding, MatchesTheReference) {
  for (const std::int64_t depth : {2, 6, 32, 38}) {
    const Tensor x = normal({2, 5, 3, depth}, 1);
    expect_close(rotary_embedding(x).value(), reference(x, 10000, 0));
    expect_close(rotary_embedding(x, 0.5, 7).value(), reference(x, 0.5, 7));
    expect_close(rotary_embedding(x.to(DType::f32)).value(), reference(x, 10000, 0), 1e-6);
  }
}

TEST(RotaryEmbedding, MatchesTheReferenceAtLatePositions) {
  const Tensor x = normal({1, 150, 1, 4}, 1);
  expect_close(rotary_embedding(x, 10000, 100000).value(), reference(x, 10000, 100000), 1e-10);
}

TEST(RotaryEmbedding, MatchesTheReferenceBeforePositionZero) {
  const Tensor x = normal({1, 130, 1, 4}, 1);
  for (const std::int64_t offset : {-1, -63, -64, -65, -200})
    expect_close(rotary_embedding(x, 100, offset).value(), reference(x, 100, offset));
}

TEST(RotaryEmbedding, ContinuesASequenceAtAnOffset) {
  const Tensor x = normal({1, 9, 2, 8}, 1);
  expect_close(rotary_embedding(x.slice(1, 4, 9), 10000, 4).value(), rotary_embedding(x).value().slice(1, 4, 9));
}

TEST(RotaryEmbedding, HasTheSameBitsAtAnyOffset) {
  const Tensor x = normal({1, 150, 2, 8}, 1);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t begin : {1, 63, 64, 65, 149}) {
      const Tensor whole = rotary_embedding(x.to(dtype), 10000, 7).value();
      const Tensor tail = rotary_embedding(x.to(dtype).slice(1, begin, 150), 10000, 7 + begin).value();
      EXPECT_TRUE(identical(tail, whole.slice(1, begin, 150))) << begin;
    }
}

/// x [.., D], its pairs (2i, 2i + 1) moved to (i, D / 2 + i).
Tensor in_halves(const Tensor& x) {
  const std::int64_t pairs = x.size(3) / 2;
  return x.reshape({x.size(0), x.size(1), x.size(2), pairs, 2}).transpose(3, 4).reshape(x.shape());
}

TEST(RotaryEmbedding, PairsTheHalvesOfAHead) {
  for (const std::int64_t depth : {2, 6, 32, 38})
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Tensor x = normal({2, 5, 3, depth}, 1).to(dtype);
      const Tensor halves = rotary_embedding(in_halves(x), 500, 7, RotaryLayout::halves).value();
      EXPECT_TRUE(identical(halves, in_halves(rotary_embedding(x, 500, 7).value())));
    }
}

TEST(RotaryEmbedding, TurnsAPartOfAHead) {
  const Tensor x = normal({2, 5, 3, 22}, 1);
  for (const RotaryLayout layout : {RotaryLayout::adjacent, RotaryLayout::halves})
    for (const std::int64_t pairs : {0, 1, 5, 9, 11})
      for (const bool trailing : {false, true}) {
        const RotaryTurns turns{rotary_frequencies(pairs, 500), layout, trailing, 1.5};
        const std::int64_t first = trailing ? 22 - 2 * pairs : 0, last = first + 2 * pairs;
        const Tensor y = rotary_embedding(x, turns, 7).value();
        EXPECT_TRUE(identical(y.slice(3, 0, first), x.slice(3, 0, first)));
        EXPECT_TRUE(identical(y.slice(3, last, 22), x.slice(3, last, 22)));
        const Tensor part = rotary_embedding(x.slice(3, first, last), 500, 7, layout).value();
        expect_close(y.slice(3, first, last), (1.5 * Var(part)).value());
        const auto op = [&](std::span<const Var> v) { return rotary_embedding(v[0], turns, 7); };
        expect_gradients(op, {x});
        expect_composed_form(op, {x}, 1e-14);
      }
  EXPECT_THAT([&] { rotary_embedding(x, RotaryTurns{rotary_frequencies(12)}); },
              ThrowsMessage<ShapeError>(
                  "rotary_embedding: x must have shape [B, T, H, D >= 24] for 12 frequencies but has [2, 5, 3, 22]"));
}

TEST(RotaryEmbedding, MakesProductsDependOnTheDistanceOnly) {
  const Tensor q = normal({1, 1, 1, 8}, 1), k = normal({1, 1, 1, 8}, 2);
  const auto product = [&](std::int64_t q_position, std::int64_t k_position) {
    const Tensor a = rotary_embedding(q, 10000, q_position).value(), b = rotary_embedding(k, 10000, k_position).value();
    double sum = 0;
    for (std::int64_t i = 0; i < 8; ++i) sum += a.at({0, 0, 0, i}) * b.at({0, 0, 0, i});
    return sum;
  };
  EXPECT_NEAR(product(5, 2), product(105, 102), 1e-12);
  EXPECT_GT(std::abs(product(5, 2) - product(5, 3)), 1e-3);
}

TEST(RotaryEmbedding, GradientsPassGradcheck) {
  const auto halves = [](std::span<const Var> x) { return rotary_embedding(x[0], 10000, 0, RotaryLayout::halves); };
  for (const std::int64_t depth : {2, 6, 34}) {
    expect_gradients(kRotary, {normal({2, 3, 2, depth}, 1)});
    expect_gradients(halves, {normal({2, 3, 2, depth}, 1)});
  }
}

TEST(RotaryEmbedding, TakesZeroSizes) {
  for (const Shape& shape : {Shape{0, 3, 2, 4}, Shape{2, 0, 2, 4}, Shape{2, 3, 0, 4}, Shape{2, 3, 2, 0}})
    EXPECT_EQ(gradients(kRotary, {normal(shape, 1)}, normal(shape, 2))[0].shape(), shape);
}

TEST(RotaryEmbedding, RejectsWhatItCannotRotate) {
  EXPECT_THAT(
      [] {
        rotary_embedding(normal({1, 3, 2, 5}));
      },
      ThrowsMessage<ShapeError>(
          "rotary_embedding: x must have shape [B, T, H, D] with an even D but has [1, 3, 2, 5]"));
  EXPECT_THAT(
      [] {
        rotary_embedding(normal({3, 2, 4}));
      },
      ThrowsMessage<ShapeError>("rotary_embedding: x must have shape [B, T, H, D] with an even D but has [3, 2, 4]"));
  EXPECT_THAT(
      [] {
        rotary_embedding(normal({1, 3, 2, 4}), -1);
      },
      ThrowsMessage<ValueError>("rotary_embedding: base must be positive but is -1"));
}

}  // namespace
}  // namespace braid::op_tests::rotary_embedding_test
