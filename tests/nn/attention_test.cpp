#include <braid/nn/attention.h>

#include <cmath>

#include <gtest/gtest.h>

#include <braid/autograd/ops/attention.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/rms_norm.h>
#include <braid/autograd/ops/rotary_embedding.h>
#include <braid/core/batch_invariant.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::attention_test {
namespace {

using testing::ElementsAre;

constexpr int kHeads = 2;
constexpr std::int64_t kBatch = 2, kTime = 5, kChannels = 8;

/// One head of one sequence, q [T, D], k, v [S, D] -> [T, D], position by position, from the definitions.
std::vector<double> naive_head(const MultiHeadAttention& m, int head, const Tensor& q, const Tensor& k,
                               const Tensor& v) {
  const AttentionSettings& o = m.settings;
  const std::int64_t head_size = q.size(1), keys = k.size(0);
  const double scale = o.scale == 0 ? 1 / std::sqrt(head_size) : o.scale;
  std::vector<double> y(static_cast<std::size_t>(q.size(0) * head_size));
  for (std::int64_t t = 0; t < q.size(0); ++t) {
    std::vector<double> weights;
    double total = o.sinks ? std::exp(m.sinks.value().at({head})) : 0;
    const std::int64_t end = o.causal ? t + 1 : keys,
                       begin = o.window > 0 ? std::max<std::int64_t>(0, end - o.window) : 0;
    for (std::int64_t s = begin; s < end; ++s) {
      double score = 0;
      for (std::int64_t d = 0; d < head_size; ++d) score += scale * q.at({t, d}) * k.at({s, d});
      if (o.softcap > 0) score = o.softcap * std::tanh(score / o.softcap);
      if (o.alibi) score -= std::exp2(-8.0 * (head + 1) / kHeads) * static_cast<double>(t - s);
      total += weights.emplace_back(std::exp(score));
    }
    for (std::int64_t s = begin; s < end; ++s)
      for (std::int64_t d = 0; d < head_size; ++d)
        y[static_cast<std::size_t>(t * head_size + d)] +=
            weights[static_cast<std::size_t>(s - begin)] / total * v.at({s, d});
  }
  return y;
}

RotaryTurns turns_of(const MultiHeadAttention& m, double sign = 1) {
  const AttentionSettings& o = m.settings;
  const double part = o.rotary_share * static_cast<double>(m.head_size());
  RotaryTurns turns = scaled_turns(static_cast<std::int64_t>(part) / 2, o.rotary_base, o.rotary_scaling);
  turns.layout = o.rotary_layout;
  turns.trailing = o.rotary_trailing;
  for (double& frequency : turns.frequencies) frequency *= sign;
  return turns;
}

/// What attention mixes, [B, T, heads, D], as the module's result.
Tensor naive_output(const MultiHeadAttention& m, Var mixed) {
  if (m.settings.shared_kv && m.settings.rotary) mixed = rotary_embedding(mixed, turns_of(m, -1));
  mixed = reshape(mixed, {mixed.size(0), mixed.size(1), -1});
  return m.o(m.o_down ? (*m.o_down)(mixed) : mixed).value();
}

Tensor naive(const MultiHeadAttention& m, const Tensor& x, const Tensor& memory) {
  const AttentionSettings& o = m.settings;
  auto heads = [&](const Linear& layer, const Tensor& x, const std::optional<RMSNorm>& norm, bool rotate) {
    Tensor y = layer(x).value().reshape({x.size(0), x.size(1), -1, m.head_size()});
    if (norm) y = (*norm)(y).value();
    if (&layer == &m.q && o.qk_norm && !norm) y = rms_norm(y, o.norm_eps).value();
    return rotate ? rotary_embedding(y, turns_of(m)).value() : y;
  };
  const Tensor q = heads(m.q, m.q_down ? (*m.q_down_norm)((*m.q_down)(x)).value() : x, m.q_norm, o.rotary),
               k = heads(m.k, memory, m.k_norm, o.rotary), v = o.shared_kv ? k : heads(m.v, memory, {}, false);
  std::vector<double> mixed;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (int h = 0; h < kHeads; ++h) {
      auto head = [&](const Tensor& t) { return t.select(0, b).select(1, h * t.size(2) / kHeads); };
      const auto y = naive_head(m, h, head(q), head(k), head(v));
      mixed.insert(mixed.end(), y.begin(), y.end());
    }
  const Tensor by_head = Tensor::of<double>({kBatch, kHeads, kTime, m.head_size()}, std::span<const double>(mixed));
  return naive_output(m, by_head.transpose(1, 2));
}

const RotaryScaling kYarn{.kind = RotaryScaling::Kind::yarn, .factor = 4, .first_context = 16, .fast = 32};

const AttentionSettings kDeepSeekV4{.rotary = true,
                                    .rotary_share = 1.0 / 3,
                                    .rotary_trailing = true,
                                    .kv_heads = 1,
                                    .head_size = 6,
                                    .qk_norm = true,
                                    .window = 3,
                                    .sinks = true,
                                    .shared_kv = true,
                                    .query_rank = 5,
                                    .output_groups = 2,
                                    .output_rank = 3,
                                    .dtype = DType::f64};

std::vector<AttentionSettings> all_settings() {
  return {{.dtype = DType::f64},
          {.bias = true, .dtype = DType::f64},
          {.rotary = true, .dtype = DType::f64},
          {.bias = true, .rotary = true, .rotary_base = 100, .dtype = DType::f64},
          {.kv_heads = 1, .dtype = DType::f64},
          {.rotary = true, .rotary_layout = RotaryLayout::halves, .head_size = 6, .dtype = DType::f64},
          {.rotary = true, .kv_heads = 1, .head_size = 2, .qk_norm = true, .norm_eps = 0.1, .dtype = DType::f64},
          {.rotary = true, .rotary_share = 0.5, .dtype = DType::f64},
          {.rotary = true, .rotary_scaling = kYarn, .window = 2, .sinks = true, .dtype = DType::f64},
          {.kv_heads = 1, .scale = 0.3, .softcap = 0.7, .alibi = true, .dtype = DType::f64},
          {.causal = false, .sinks = true, .dtype = DType::f64},
          {.query_rank = 3, .dtype = DType::f64},
          {.output_groups = 2, .output_rank = 3, .dtype = DType::f64},
          {.kv_heads = 1, .shared_kv = true, .dtype = DType::f64},
          kDeepSeekV4};
}

TEST(MultiHeadAttention, MixesTheValuesOfEarlierPositions) {
  for (const AttentionSettings& settings : all_settings()) {
    Rng rng(1);
    MultiHeadAttention attention(kChannels, kHeads, rng, settings);
    if (attention.k_norm) attention.k_norm->weight = randn({attention.head_size()}, rng, DType::f64);
    if (settings.sinks) attention.sinks = randn({kHeads}, rng, DType::f64);
    const Tensor x = randn({kBatch, kTime, kChannels}, rng, DType::f64);
    expect_close(attention(x).value(), naive(attention, x, x));
  }
}

TEST(MultiHeadAttention, HasTheSlopesOfALiBiForAnyNumberOfHeads) {
  Rng rng(9);
  const MultiHeadAttention m(6, 3, rng, {.alibi = true, .dtype = DType::f64});
  const Tensor x = randn({1, kTime, 6}, rng, DType::f64);
  const auto heads = [&](const Linear& linear) { return reshape(linear(x), {1, kTime, 3, 2}); };
  const Tensor slopes = Tensor::of<double>({3}, {0x1p-4, 0x1p-8, 0x1p-2});  // every second one of 4 heads for the third
  const Var mixed = attention(heads(m.q), heads(m.k), heads(m.v), {.alibi = slopes});
  EXPECT_TRUE(identical(m(x).value(), m.o(reshape(mixed, {1, kTime, 6})).value()));
}

TEST(MultiHeadAttention, MixesTheValuesOfAMemory) {
  Rng rng(6);
  const MultiHeadAttention attention(kChannels, kHeads, rng,
                                     {.memory_channels = 3, .causal = false, .dtype = DType::f64});
  const Tensor x = randn({kBatch, kTime, kChannels}, rng, DType::f64), memory = randn({kBatch, 7, 3}, rng, DType::f64);
  expect_close(attention(x, {.memory = memory}).value(), naive(attention, x, memory));
  expect_gradients(attention, [&](const MultiHeadAttention& m) { return m(x, {.memory = memory}); });
}

TEST(MultiHeadAttention, MixesTheFirstValuesIntoItsOwn) {
  Rng rng(8);
  for (const int kv_heads : {kHeads, 1}) {
    AttentionSettings settings{.bias = true, .kv_heads = kv_heads, .dtype = DType::f64};
    const MultiHeadAttention first(kChannels, kHeads, rng, settings);
    settings.value_residual = true;
    MultiHeadAttention later(kChannels, kHeads, rng, settings);
    later.value_weights = Tensor::of<double>({2}, {0.3, -1.2});
    const auto split = [](const Var& y, int heads) { return reshape(y, {kBatch, kTime, heads, -1}); };
    const Var x = randn({kBatch, kTime, kChannels}, rng, DType::f64);
    Var values;
    const Var h = first(x, {.first_values = &values});
    expect_close(values.value(), split(first.v(x), kv_heads).value());
    const Var mixed = braid::attention(split(later.q(h), kHeads), split(later.k(h), kv_heads),
                                       0.3 * values - 1.2 * split(later.v(h), kv_heads));
    expect_close(later(h, {.first_values = &values}).value(), later.o(reshape(mixed, {kBatch, kTime, -1})).value());
  }
}

TEST(MultiHeadAttention, IsItselfWithAllWeightOnItsOwnValues) {
  for (AttentionSettings settings : all_settings()) {
    if (settings.shared_kv) continue;
    Rng rng(9), same(9);
    const MultiHeadAttention plain(kChannels, kHeads, rng, settings);
    settings.value_residual = true;
    MultiHeadAttention mixing(kChannels, kHeads, same, settings);
    mixing.value_weights = Tensor::of<double>({2}, {0, 1});
    const Tensor x = randn({kBatch, kTime, kChannels}, rng, DType::f64);
    Var values;
    const Tensor y = plain(x, {.first_values = &values}).value();
    EXPECT_TRUE(identical(mixing(x, {.first_values = &values}).value(), y));
    const Tensor kept = values.value();
    plain(-x, {.first_values = &values});
    EXPECT_TRUE(identical(values.value(), kept));
  }
}

TEST(MultiHeadAttention, MasksAndDropsOnlyWhereItIsTold) {
  Rng rng(7), drawn(8);
  const MultiHeadAttention attention(kChannels, kHeads, rng, {.causal = false, .dropout = 0.5, .dtype = DType::f64});
  const Tensor x = randn({1, kTime, kChannels}, rng, DType::f64);
  const Tensor mask = Tensor::of<std::int32_t>({kTime}, {1, 1, 1, 0, 0});
  expect_close(attention(x, {.mask = mask}).value().slice(1, 0, 3), attention(x.slice(1, 0, 3)).value(), 1e-15);
  EXPECT_FALSE(identical(attention(x, {.rng = &drawn}).value(), attention(x).value()));
  EXPECT_EQ(drawn.draws(), 1u);
}

TEST(MultiHeadAttention, SeesCompressedEntriesBesideItsWindow) {
  for (const CompressionSettings& compression :
       {CompressionSettings{.rate = 2},
        {.rate = 3, .overlapping = true},
        {.rate = 1, .overlapping = true, .index_heads = 5, .index_size = 4, .index_top = 2}}) {
    Rng rng(9);
    AttentionSettings settings = kDeepSeekV4;
    settings.compression = compression;
    MultiHeadAttention attention(kChannels, kHeads, rng, settings);
    attention.sinks = randn({kHeads}, rng, DType::f64);
    const Tensor x = randn({kBatch, kTime, kChannels}, rng, DType::f64);
    const std::int64_t count = kTime / compression.rate;
    Tensor sees = zeros({kBatch, 1, kTime, kTime + count}, DType::i32);
    const Var latent = (*attention.q_down_norm)((*attention.q_down)(x));
    Tensor chosen;
    if (attention.indexer)
      chosen = (*attention.indexer)(x, latent, attention.indexer->keys(x, turns_of(attention)).value(),
                                    turns_of(attention), 0);
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t t = 0; t < kTime; ++t)
        for (std::int64_t s = 0; s < kTime + count; ++s) {
          const bool in_window = s <= t && s > t - settings.window,
                     closed = (s - kTime + 1) * compression.rate <= t + 1;
          const bool seen = s < kTime ? in_window : closed && (!chosen.defined() || chosen.at({b, t, s - kTime}) == 1);
          sees.mutable_data<std::int32_t>()[(b * kTime + t) * (kTime + count) + s] = seen ? 1 : 0;
        }
    const auto turn = [&](const Var& y) { return rotary_embedding(y, turns_of(attention)); };
    const Var q = turn(rms_norm(reshape(attention.q(latent), {kBatch, kTime, kHeads, 6}), 1e-5));
    const Var k = turn((*attention.k_norm)(reshape(attention.k(x), {kBatch, kTime, 1, 6})));
    const Var all = concat({k, (*attention.compressor)(x, turns_of(attention))}, 1);
    const Var mixed = braid::attention(q, all, all, {.causal = false, .mask = sees, .sinks = attention.sinks});
    expect_close(attention(x).value(), naive_output(attention, mixed));
    if (!attention.indexer) expect_gradients(attention, [&](const MultiHeadAttention& m) { return m(x); });
    expect_error<ValueError>([&] { attention(x, {.mask = sees}); },
                             "MultiHeadAttention: a mask needs a module without compression");
    const Tensor few = x.slice(1, 0, 1);  // where no window of two is closed yet
    if (compression.rate > 1) {
      EXPECT_EQ((*attention.compressor)(few, turns_of(attention)).numel(), 0);
      expect_close(attention(few).value(), attention(x).value().slice(1, 0, 1), 1e-14);
    }
  }
}

TEST(MultiHeadAttention, SeesInALongSequenceWhatItSeesInParts) {
  Rng rng(10);
  AttentionSettings settings = kDeepSeekV4;
  settings.compression = {.rate = 3, .overlapping = true, .index_heads = 5, .index_size = 4, .index_top = 2};
  const MultiHeadAttention attention(kChannels, kHeads, rng, settings);
  const BatchInvariant same_choices;
  const Tensor x = randn({1, 600, kChannels}, rng, DType::f64), whole = attention(x).value();
  LayerCache cache;
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 500}, {500, 600}})
    expect_close(attention(x.slice(1, begin, end), cache, begin).value(), whole.slice(1, begin, end));
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

TEST(MultiHeadAttention, NeedsTheValuesThatItMixesIn) {
  Rng rng(7);
  const MultiHeadAttention attention(8, 2, rng, {.value_residual = true});
  EXPECT_EQ(parameter_names(attention).back(), "value_weights");
  EXPECT_THAT(attention.value_weights.value().to_vector<double>(), ElementsAre(0.5, 0.5));
  const char* const text = "MultiHeadAttention: value_residual needs first_values of shape [1, 3, 2, 4]";
  const Tensor x = zeros({1, 3, 8});
  Var none, others = zeros({1, 2, 2, 4});
  LayerCache cache;
  expect_error<ValueError>([&] { attention(x); }, text);
  expect_error<ValueError>([&] { attention(x, {.first_values = &none}); }, text);
  expect_error<ValueError>([&] { attention(x, {.first_values = &others}); }, text);
  expect_error<ValueError>([&] { attention(x, cache, 0); }, text);
  expect_error<ValueError>([&] { MultiHeadAttention(8, 2, rng, {.value_residual = true, .shared_kv = true}); },
                           "MultiHeadAttention: value_residual needs shared_kv = false");
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
    MultiHeadAttention attention(8, 2, rng, settings);
    if (settings.sinks) attention.sinks = randn({2}, rng, DType::f64);
    const Tensor x = randn({2, 3, 8}, rng, DType::f64);
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
  expect_error<ValueError>(
      [&] { MultiHeadAttention(6, 2, rng, {.rotary = true, .rotary_share = 0.5}); },
      "MultiHeadAttention: rotary positions need an even part of a head but head_size is 3 and rotary_share 0.5");
  for (const AttentionSettings& bad : {AttentionSettings{.window = -1},
                                       {.softcap = -1},
                                       {.scale = INFINITY},
                                       {.dropout = 1},
                                       {.causal = false, .window = 1},
                                       {.causal = false, .alibi = true},
                                       {.rotary = true, .rotary_share = 0},
                                       {.rotary = true, .rotary_share = 0.3},
                                       {.rotary = true, .rotary_share = 1.5},
                                       {.rotary = true, .rotary_scaling = {.kind = kYarn.kind, .factor = 0.5}},
                                       {.query_rank = -1},
                                       {.output_groups = 3, .output_rank = 1},
                                       {.output_groups = 2},
                                       {.causal = false, .shared_kv = true},
                                       {.memory_channels = 3, .shared_kv = true},
                                       {.rotary = true, .kv_heads = 1, .compression = {.rate = 2}},
                                       {.rotary = true, .shared_kv = true, .compression = {.rate = 2}},
                                       {.kv_heads = 1, .shared_kv = true, .compression = {.rate = 2}},
                                       {.rotary = true, .kv_heads = 1, .shared_kv = true, .compression = {.rate = -1}},
                                       {.rotary = true,
                                       .kv_heads = 1,
                                       .shared_kv = true,
                                       .compression = {.rate = 2, .index_heads = 1, .index_size = 2, .index_top = 1}},
                                       {.rotary = true,
                                       .kv_heads = 1,
                                       .shared_kv = true,
                                       .query_rank = 2,
                                       .compression = {.rate = 2, .index_heads = 1, .index_top = 1}}})
    EXPECT_THAT([&] { MultiHeadAttention(8, 2, rng, bad); },  // and not a part of it
                testing::ThrowsMessage<ValueError>(testing::ContainsRegex("^(MultiHeadAttention|scaled_turns): ")));
  expect_error<ValueError>(
      [&] {
        MultiHeadAttention(8, 2, rng)(zeros({1, 3, 8}), {.memory = zeros({1, 3, 8})});
      },
      "MultiHeadAttention: a memory needs a module with causal = false");
  expect_error<ShapeError>(
      [&] {
        MultiHeadAttention(8, 2, rng)(zeros({3, 8}));
      },
      "MultiHeadAttention: x must have shape [B, T, C] but has [3, 8]");
}

}  // namespace
}  // namespace braid::nn::attention_test
