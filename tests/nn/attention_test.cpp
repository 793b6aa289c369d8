#include <braid/nn/attention.h>

#include <cmath>

#include <gtest/gtest.h>

#include <braid/autograd/ops/rotary_embedding.h>

#include "tests/nn/module_checks.h"

namespace braid::nn {
namespace {

using testing::ElementsAre;

constexpr int kHeads = 2;
constexpr std::int64_t kBatch = 2, kTime = 5, kChannels = 8, kHeadSize = kChannels / kHeads;

/// One head of one sequence, q, k, v [T, D] -> [T, D], position by position.
std::vector<double> naive_head(const Tensor& q, const Tensor& k, const Tensor& v) {
  std::vector<double> y(static_cast<std::size_t>(kTime * kHeadSize));
  for (std::int64_t t = 0; t < kTime; ++t) {
    std::vector<double> weights;
    double total = 0;
    for (std::int64_t s = 0; s <= t; ++s) {
      double score = 0;
      for (std::int64_t d = 0; d < kHeadSize; ++d) score += q.at({t, d}) * k.at({s, d});
      total += weights.emplace_back(std::exp(score / std::sqrt(kHeadSize)));
    }
    for (std::int64_t s = 0; s <= t; ++s)
      for (std::int64_t d = 0; d < kHeadSize; ++d)
        y[static_cast<std::size_t>(t * kHeadSize + d)] += weights[static_cast<std::size_t>(s)] / total * v.at({s, d});
  }
  return y;
}

Tensor naive(const MultiHeadAttention& m, const Tensor& x) {
  auto heads = [&](const Linear& layer, bool rotate) {
    const Tensor y = layer(x).value().reshape({kBatch, kTime, kHeads, kHeadSize});
    return rotate ? rotary_embedding(y, m.rotary_base).value() : y;
  };
  const Tensor q = heads(m.q, m.rotary), k = heads(m.k, m.rotary), v = heads(m.v, false);
  std::vector<double> mixed;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t h = 0; h < kHeads; ++h) {
      auto head = [&](const Tensor& t) { return t.select(0, b).select(1, h); };
      const auto y = naive_head(head(q), head(k), head(v));
      mixed.insert(mixed.end(), y.begin(), y.end());
    }
  const Tensor by_head = Tensor::of<double>({kBatch, kHeads, kTime, kHeadSize}, std::span<const double>(mixed));
  return m.o(by_head.transpose(1, 2).reshape(x.shape())).value();
}

std::vector<AttentionSettings> all_settings() {
  return {{.dtype = DType::f64},
          {.bias = true, .dtype = DType::f64},
          {.rotary = true, .dtype = DType::f64},
          {.bias = true, .rotary = true, .rotary_base = 100, .dtype = DType::f64}};
}

TEST(MultiHeadAttention, MixesTheValuesOfEarlierPositions) {
  for (const AttentionSettings& settings : all_settings()) {
    Rng rng(1);
    const MultiHeadAttention attention(kChannels, kHeads, rng, settings);
    const Tensor x = randn({kBatch, kTime, kChannels}, rng, DType::f64);
    expect_close(attention(x).value(), naive(attention, x));
  }
}

TEST(MultiHeadAttention, NamesItsParameters) {
  Rng rng(2);
  EXPECT_THAT(parameter_names(MultiHeadAttention(4, 2, rng)),
              ElementsAre("q.weight", "k.weight", "v.weight", "o.weight"));
  EXPECT_THAT(parameter_names(MultiHeadAttention(4, 2, rng, {.bias = true})),
              ElementsAre("q.weight", "q.bias", "k.weight", "k.bias", "v.weight", "v.bias", "o.weight", "o.bias"));
}

TEST(MultiHeadAttention, TrainsAllParameters) {
  for (const AttentionSettings& settings : all_settings()) {
    if (settings.bias && !settings.rotary) continue;  // softmax is blind to a bias that all keys share
    Rng rng(3);
    const MultiHeadAttention attention(4, 2, rng, settings);
    const Tensor x = randn({2, 3, 4}, rng, DType::f64);
    expect_gradients(attention, [&](const MultiHeadAttention& m) { return m(x); });
  }
}

TEST(MultiHeadAttention, IsCausal) {
  Rng rng(4);
  const MultiHeadAttention attention(kChannels, kHeads, rng, {.dtype = DType::f64});
  const Tensor x = randn({1, kTime, kChannels}, rng, DType::f64);
  const Tensor prefix = attention(x.slice(1, 0, 3).clone()).value();
  expect_close(attention(x).value().slice(1, 0, 3), prefix, 1e-15);
}

TEST(MultiHeadAttention, RejectsBadSettingsAndInputs) {
  Rng rng;
  expect_error<ValueError>([&] { MultiHeadAttention(10, 4, rng); },
                           "MultiHeadAttention: heads must divide channels but channels is 10 and heads is 4");
  expect_error<ValueError>([&] { MultiHeadAttention(8, 0, rng); },
                           "MultiHeadAttention: heads must divide channels but channels is 8 and heads is 0");
  expect_error<ValueError>([&] { MultiHeadAttention(6, 2, rng, {.rotary = true}); },
                           "MultiHeadAttention: rotary needs an even number of channels per head but there are 3");
  expect_error<ShapeError>(
      [&] {
        MultiHeadAttention(8, 2, rng)(zeros({3, 8}));
      },
      "MultiHeadAttention: x must have shape [B, T, C] but has [3, 8]");
}

}  // namespace
}  // namespace braid::nn
