#include <braid/nn/kv_cache.h>

#include <gtest/gtest.h>

#include <braid/core/batch_invariant.h>
#include <braid/nn/transformer.h>

#include "tests/nn/module_checks.h"
#include "tests/support.h"

namespace braid::nn::kv_cache_test {
namespace {

constexpr std::int64_t kVocab = 13, kContext = 150;

TransformerConfig gpt2(DType dtype) {
  return {.vocab = kVocab,
          .context = kContext,
          .channels = 42,
          .layers = 2,
          .heads = 3,
          .norm = NormKind::layer,
          .attention_bias = true,
          .tied_head = true,
          .dtype = dtype};
}

TransformerConfig llama(DType dtype) {
  return {.vocab = kVocab,
          .context = kContext,
          .channels = 40,
          .layers = 2,
          .heads = 4,
          .hidden = 53,
          .kv_heads = 2,
          .positions = PositionKind::rotary,
          .activation = Activation::swiglu,
          .mlp_bias = false,
          .dtype = dtype};
}

TransformerConfig qwen3(DType dtype) {
  TransformerConfig config = llama(dtype);
  config.kv_heads = 1;
  config.head_size = 22;
  config.qk_norm = true;
  return config;
}

TransformerConfig resformer(DType dtype) {
  TransformerConfig config = llama(dtype);
  config.layers = 3;
  config.windows = {0, 7};
  config.value_residual = true;
  return config;
}

TransformerConfig mixtral(DType dtype) {
  TransformerConfig config = llama(dtype);
  config.experts = ExpertsSettings{.experts = 5, .top = 2};
  return config;
}

TransformerConfig gemma2(DType dtype) {
  TransformerConfig config = llama(dtype);
  config.activation = Activation::geglu;
  config.windows = {3, 0};
  config.norm_offset = 1;
  config.post_norms = true;
  config.embedding_scale = 3;
  config.attention_scale = 0.3;
  config.attention_softcap = 5;
  config.logits_softcap = 7;
  return config;
}

TransformerConfig deepseek_v4(DType dtype) {
  TransformerConfig config = llama(dtype);
  config.kv_heads = 1;
  config.head_size = 16;  // sums over positions have other bits for fewer channels of one window alone
  config.rotary_share = 0.25;
  config.window = 9;
  config.layers = 3;
  config.qk_norm = config.shared_kv = config.attention_sinks = true;
  config.query_rank = 10;
  config.output_groups = 2;
  config.output_rank = 7;
  config.compressions = {
      {.rate = 4, .overlapping = true, .index_heads = 2, .index_size = 6, .index_top = 5}, {.rate = 70}, {}};
  config.experts = ExpertsSettings{.experts = 4, .top = 2, .shared = 1, .routing = Routing::sqrt_softplus};
  config.token_routed = 1;
  config.mlp_limit = 1;
  return config;
}

Transformer<> stirred(const TransformerConfig& config) {
  Rng rng(1);
  Transformer<> model(config, rng);
  for_each_param(model,
                 [&](const std::string&, Var& p) { p = (p + 0.3 * Var(randn(p.shape(), rng, p.dtype()))).value(); });
  return model;
}

/// Reads `counts` tokens at a time; what comes after each must be what the whole sequence says there.
void expect_same_bits(const Transformer<>& model, const Tensor& tokens, const std::vector<std::int64_t>& counts) {
  const BatchInvariant same_bits;
  const Tensor whole = model.logits(tokens).value();
  KVCache cache = model.make_cache(tokens.size(0));
  for (const std::int64_t count : counts) {
    const std::int64_t end = cache.length + count;
    const Tensor logits = model.next_logits(tokens.slice(1, cache.length, end).clone(), cache);
    EXPECT_EQ(cache.length, end);
    ASSERT_TRUE(identical(logits, whole.select(1, end - 1).clone())) << end;
  }
}

TEST(KVCache, GivesTheBitsOfAllTokensAtOnce) {
  Rng rng(2);
  std::vector<std::int64_t> chunks{1, 2, 63, 1, 5, 64, 14};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const TransformerConfig& config : {gpt2(dtype), llama(dtype), qwen3(dtype), resformer(dtype), mixtral(dtype),
                                            gemma2(dtype), deepseek_v4(dtype)}) {
      const Transformer<> model = stirred(config);
      expect_same_bits(model, randint(0, kVocab, {1, kContext}, rng), std::vector<std::int64_t>(kContext, 1));
      expect_same_bits(model, randint(0, kVocab, {3, kContext}, rng), chunks);
      expect_same_bits(model, randint(0, kVocab, {2, 3}, rng), {3});
    }
}

TEST(KVCache, OfAWindowKeepsItsBitsAndNotMuchMore) {
  Rng rng(4);
  for (const AttentionSettings& settings : {AttentionSettings{.rotary = true, .window = 5},
                                            {.window = 64, .sinks = true},
                                            {.window = 100, .alibi = true},
                                            {.kv_heads = 1, .window = 1, .softcap = 2}}) {
    const MultiHeadAttention attention(8, 2, rng, settings);
    const Tensor x = randn({2, 700, 8}, rng);
    const BatchInvariant same_bits;
    const Tensor whole = attention(x).value();
    for (const std::int64_t first : {1, 300}) {
      LayerCache cache;
      for (std::int64_t at = 0, next = first; at < 700;
           at += next, next = at % 2 == 0 ? 1 : std::min<std::int64_t>(70, 700 - at)) {
        const Tensor y = attention(x.slice(1, at, at + next), cache, at).value();
        ASSERT_TRUE(identical(y, whole.slice(1, at, at + next))) << at << ", window " << settings.window;
      }
      EXPECT_LT(cache.keys(700).size(1), settings.window + 64 + 70);
    }
  }
}

TEST(KVCache, OfAWindowRefusesToGoBackToWhatItForgot) {
  LayerCache cache;
  const Tensor row = ones({1, 1, 1, 2});
  for (std::int64_t position = 0; position < 200; ++position) cache.write(position, row, row, 10);
  cache.write(180, row, row, 10);
  expect_error<ValueError>(
      [&] { cache.write(130, row, row, 10); },
      "PositionCache: position 130 sees positions from 121 on but those before 128 have been forgotten");
  cache.write(0, row, row, 10);
  EXPECT_EQ(cache.keys(1).size(1), 1);
  const Tensor others = full({2, 3, 2, 4}, 5, DType::f64);
  cache.write(0, others, others, 10);
  EXPECT_TRUE(identical(cache.keys(3).contiguous(), others) && identical(cache.values(3).contiguous(), others));
}

TEST(KVCache, IsAValueThatCanForget) {
  Rng rng(3);
  const Transformer<> model = stirred(qwen3(DType::f64));
  const BatchInvariant same_bits;
  const Tensor tokens = randint(0, kVocab, {2, 9}, rng), others = randint(0, kVocab, {2, 3}, rng);
  KVCache cache = model.make_cache(2, 12);
  model.next_logits(tokens.slice(1, 0, 6).clone(), cache);
  KVCache copy = cache;
  model.next_logits(others, copy);
  const Tensor expected = model.logits(tokens).value().select(1, 8).clone();
  EXPECT_TRUE(identical(model.next_logits(tokens.slice(1, 6, 9).clone(), cache), expected));
  cache.length = 4;
  model.next_logits(others, cache);
  cache.length = 4;
  EXPECT_TRUE(identical(model.next_logits(tokens.slice(1, 4, 9).clone(), cache), expected));
}

TEST(KVCache, MovesItsMemoryOnlyWhenItDoubles) {
  LayerCache cache;
  const Tensor row = ones({2, 1, 3, 5});
  std::vector<const std::byte*> places;
  for (std::int64_t position = 0; position < 1000; ++position) {
    cache.write(position, row, row);
    const std::byte* place = cache.keys(position + 1).bytes();
    if (places.empty() || place != places.back()) places.push_back(place);
  }
  EXPECT_LE(places.size(), 5U);
  EXPECT_EQ(cache.values(1000).select(0, 1).to_vector<float>(), std::vector<float>(15000, 1));
}

TEST(KVCache, RejectsWhatDoesNotFit) {
  const Transformer<> model = stirred(llama(DType::f32));
  KVCache cache = model.make_cache(1, 4);
  model.next_logits(zeros({1, 3}, DType::i32), cache);
  expect_error<ShapeError>(
      [&] {
        model.next_logits(zeros({1, 2}, DType::i32), cache);
      },
      "Transformer: the cache has room for 4 tokens and holds 3 but 2 more came");
  expect_error<ShapeError>(
      [&] {
        model.next_logits(zeros({2, 1}, DType::i32), cache);
      },
      "Transformer: tokens must have shape [1, T >= 1] to match the cache but have [2, 1]");
  expect_error<ShapeError>(
      [&] {
        model.next_logits(zeros({1, 0}, DType::i32), cache);
      },
      "Transformer: tokens must have shape [1, T >= 1] to match the cache but have [1, 0]");
  EXPECT_THROW(model.next_logits(full({1, 1}, kVocab, DType::i32), cache), Error);
  EXPECT_EQ(cache.length, 3);
  cache.layers.pop_back();
  expect_error<ShapeError>(
      [&] {
        model.next_logits(zeros({1, 1}, DType::i32), cache);
      },
      "Transformer: the cache must be of 2 blocks but is of 1");
  expect_error<ValueError>([&] { model.make_cache(1, 151); },
                           "Transformer: a cache must have room for 1 to 150 tokens, the context, but has for 151");
  expect_error<ValueError>([&] { model.make_cache(0); },
                           "Transformer: a cache must be for at least 1 sequence but is for 0");
}

}  // namespace
}  // namespace braid::nn::kv_cache_test
