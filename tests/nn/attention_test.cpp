#include <braid/nn/attention.h>

#include <cmath>

#include <gtest/gtest.h>

#include <braid/autograd/ops/rotary_embedding.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::attention_test {
namespace {

using testing::ElementsAre;

constexpr int kHeads = 2;
constexpr std::int64_t kBatch = 2, kTime = 5, kChannels = 8;

/// One head of one sequence, q, k, v [T, D] -> [T, D], position by position.
std::vector<double> naive_head(const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t head_size = q.size(1);
  std::vector<double> y(static_cast<std::size_t>(kTime * head_size));
  for (std::int64_t t = 0; t < kTime; ++t) {
    std::vector<double> weights;
    double total = 0;
    for (std::int64_t s = 0; s <= t; ++s) {
      double score = 0;
      for (std::int64_t d = 0; d < head_size; ++d) score += q.at({t, d}) * k.at({s, d});
      total += weights.emplace_back(std::exp(score / std::sqrt(head_size)));
    }
    for (std::int64_t s = 0; s <= t; ++s)
      for (std::int64_t d = 0; d < head_size; ++d)
        y[static_cast<std::size_t>(t * head_size + d)] += weights[static_cast<std::size_t>(s)] / total * v.at({s, d});
  }
  return y;
}

Tensor naive(const MultiHeadAttention& m, const Tensor& x) {
  auto heads = [&](const Linear& layer, const std::optional<RMSNorm>& norm, bool rotate) {
    Tensor y = layer(x).value().reshape({kBatch, kTime, -1, m.head_size()});
    if (norm) y = (*norm)(y).value();
    return rotate ? rotary_embedding(y, m.settings.rotary_base, 0, m.settings.rotary_layout).value() : y;
  };
  const Tensor q = heads(m.q, m.q_norm, m.settings.rotary), k = heads(m.k, m.k_norm, m.settings.rotary),
               v = heads(m.v, {}, false);
  std::vector<double> mixed;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t h = 0; h < kHeads; ++h) {
      auto head = [&](const Tensor& t) { return t.select(0, b).select(1, h * t.size(2) / kHeads); };
      const auto y = naive_head(head(q), head(k), head(v));
      mixed.insert(mixed.end(), y.begin(), y.end());
    }
  const Tensor by_head = Tensor::of<double>({kBatch, kHeads, kTime, m.head_size()}, std::span<const double>(mixed));
  return m.o(by_head.transpose(1, 2).reshape({kBatch, kTime, -1})).value();
}

std::vector<AttentionSettings> all_settings() {
  return {{.dtype = DType::f64},
          {.bias = true, .dtype = DType::f64},
          {.rotary = true, .dtype = DType::f64},
          {.bias = true, .rotary = true, .rotary_base = 100, .dtype = DType::f64},
          {.kv_heads = 1, .dtype = DType::f64},
          {.rotary = true, .rotary_layout = RotaryLayout::halves, .head_size = 6, .dtype = DType::f64},
          {.rotary = true, .kv_heads = 1, .head_size = 2, .qk_norm = true, .norm_eps = 0.1, .dtype = DType::f64}};
}

TEST(MultiHeadAttention, MixesTheValuesOfEarlierPositions) {
  for (const AttentionSettings& settings : all_settings()) {
    Rng rng(1);
    MultiHeadAttention attention(kChannels, kHeads, rng, settings);
    if (attention.k_norm) attention.k_norm->weight = randn({attention.head_size()}, rng, DType::f64);
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
  EXPECT_THAT(parameter_names(MultiHeadAttention(4, 2, rng, {.qk_norm = true})),
              ElementsAre("q.weight", "k.weight", "v.weight", "o.weight", "q_norm.weight", "k_norm.weight"));
}

TEST(MultiHeadAttention, GivesHeadsAndTheirKeysSizesOfTheirOwn) {
  Rng rng(5);
  const MultiHeadAttention attention(8, 4, rng, {.kv_heads = 2, .head_size = 3, .qk_norm = true});
  EXPECT_EQ(attention.q.weight.shape(), Shape({12, 8}));
  EXPECT_EQ(attention.k.weight.shape(), Shape({6, 8}));
  EXPECT_EQ(attention.v.weight.shape(), Shape({6, 8}));
  EXPECT_EQ(attention.o.weight.shape(), Shape({8, 12}));
  EXPECT_EQ(attention.q_norm->weight.shape(), Shape({3}));
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
  expect_error<ValueError>([&] { MultiHeadAttention(8, 4, rng, {.kv_heads = 3}); },
                           "MultiHeadAttention: kv_heads must divide heads but heads is 4 and kv_heads is 3");
  expect_error<ValueError>([&] { MultiHeadAttention(8, 4, rng, {.head_size = 0}); },
                           "MultiHeadAttention: head_size must be at least 1 but is 0");
  expect_error<ValueError>([&] { MultiHeadAttention(6, 2, rng, {.rotary = true}); },
                           "MultiHeadAttention: rotary positions need an even head_size but it is 3");
  expect_error<ShapeError>(
      [&] {
        MultiHeadAttention(8, 2, rng)(zeros({3, 8}));
      },
      "MultiHeadAttention: x must have shape [B, T, C] but has [3, 8]");
}

}  // namespace
}  // namespace braid::nn::attention_test
