#include "../../../apps/generate/generation.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/error.h>
#include <braid/nn/transformer.h>
#include <tests/nn/module_checks.h>
#include <tests/support.h>

#include "../../../apps/common/run_main.h"

namespace braid::generate {
namespace {

using testing::Pair;
using testing::SizeIs;
using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kVocab = 13, kContext = 40;

/// Makes the weights large enough for the tokens to matter.
void stir(auto& model, Rng& rng) {
  for_each_param(model, [&](const std::string&, Var& parameter) {
    const Tensor& value = parameter.value();
    parameter = value + 0.3 * randn(value.shape(), rng, value.dtype());
  });
}

/// A small model under any connection.
LanguageModel small_model(const std::string& kind, bool value_residual = false) {
  Rng rng(3);
  apps::TrainerSettings settings{
      .layers = 2, .channels = 16, .heads = 2, .context = kContext, .value_residual = value_residual};
  settings.connection.kind = kind;
  LanguageModel language{apps::make_model(settings, kVocab, rng), apps::Vocabulary::of_numbers(kVocab), {}};
  stir(language.model, rng);
  return language;
}

Ids written(const LanguageModel& language, const Ids& prompt, const GenerationSettings& settings,
            Generated* result = nullptr) {
  Ids ids;
  const Generated generated = generate(language, prompt, settings, [&](std::int32_t id) {
    ids.push_back(id);
    return true;
  });
  if (result != nullptr) *result = generated;
  return ids;
}

TEST(Generation, HasTheSameBitsWithAndWithoutACacheUnderEveryConnection) {
  for (const char* kind : {"residual", "hc", "mhc", "manifold", "mhc-layer", "skip", "deepseek-v4", "hunyuan-v4",
                           "gated", "single-pass", "attention-residual", "frac", "layer-scale", "rezero", "laurel"}) {
    SCOPED_TRACE(kind);
    const LanguageModel language = small_model(kind, /*value_residual=*/std::string_view(kind) == "hc");
    const BatchInvariant same_rows;
    Rng rng(5);
    const Tensor ids = randint(0, kVocab, {1, kContext}, rng), all = language.model.logits(ids).value();
    nn::KVCache cache = language.model.make_cache(1);
    for (std::int64_t at = 0; at < kContext;) {
      const std::int64_t end = at == 0 ? 7 : at + 1;
      const Tensor logits = language.model.next_logits(ids.slice(1, at, end).contiguous(), cache);
      EXPECT_TRUE(identical(logits, all.select(1, end - 1).contiguous())) << "token " << end;
      at = end;
    }
    const Ids with = written(language, {1, 2, 3}, {.tokens = 30});
    EXPECT_EQ(with, written(language, {1, 2, 3}, {.tokens = 30, .cache = false}));
    EXPECT_THAT(with, SizeIs(30));
    nn::Transformer<mhc::Connection> mixed = language.model;
    mixed.config.dtype = DType::bf16;
    EXPECT_TRUE(identical(language.model.in_bf16().logits(ids), mixed.logits(ids)));
    EXPECT_GT(std::set<std::int32_t>(with.begin(), with.end()).size(), 3u);
  }
}

nn::Transformer<> of_family(nn::TransformerConfig config, DType dtype) {
  config.vocab = kVocab;
  config.context = 1001;
  config.layers = 2;
  config.dtype = dtype;
  Rng rng(4);
  nn::Transformer<> model(config, rng);
  stir(model, rng);
  return model;
}

TEST(Generation, OfAThousandTokensHasTheBitsOfNoCacheForEveryFamily) {
  using enum nn::PositionKind;
  const nn::TransformerConfig llama{.channels = 24,
                                    .heads = 4,
                                    .hidden = 27,
                                    .kv_heads = 2,
                                    .positions = rotary,
                                    .activation = nn::Activation::swiglu,
                                    .mlp_bias = false};
  nn::TransformerConfig gpt2{.channels = 21, .heads = 3, .norm = nn::NormKind::layer, .attention_bias = true},
      qwen3 = llama;
  gpt2.tied_head = qwen3.tied_head = qwen3.qk_norm = true;
  qwen3.head_size = 8;
  const BatchInvariant with_or_without_cache;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const nn::TransformerConfig& config : {gpt2, llama, qwen3}) {
      const nn::Transformer<> model = of_family(config, dtype);
      nn::KVCache cache = model.make_cache(1);
      Rng rng(6);
      Ids ids{1};
      while (ids.size() <= 1000) {
        const Tensor all = Tensor::of<std::int32_t>({1, std::ssize(ids)}, ids);
        const Tensor logits = model.next_logits(all.slice(1, cache.length, all.size(1)).contiguous(), cache);
        ASSERT_TRUE(identical(logits, model.logits(all).value().select(1, -1).contiguous())) << ids.size();
        ids.push_back(nn::sample(logits.to(DType::f32), {}, rng));
      }
      EXPECT_EQ(std::set<std::int32_t>(ids.begin(), ids.end()).size(), kVocab);
    }
}

TEST(Generation, DependsOnTheSeedAndNotOnThreads) {
  const LanguageModel language = small_model("mhc");
  const Ids ids = written(language, {0}, {.tokens = 30});
  EXPECT_NE(ids, written(language, {0}, {.tokens = 30, .seed = 2}));
  const Ids greedy = written(language, {0}, {.tokens = 30, .greedy = true});
  EXPECT_EQ(greedy, written(language, {0}, {.tokens = 30, .greedy = true, .seed = 2}));
  EXPECT_EQ(greedy, written(language, {0}, {.tokens = 30, .sampling = {.top_k = 1}}));
  for (const int threads : {1, 3}) {
    const WithThreads number(threads);
    EXPECT_EQ(ids, written(language, {0}, {.tokens = 30}));
  }
}

/// A model of this architecture, of `context` tokens.
LanguageModel with_architecture(nn::TransformerConfig config, std::int64_t context) {
  config.vocab = kVocab;
  config.context = context;
  config.layers = 2;
  Rng rng(7);
  const apps::TrainerSettings settings{.layers = 2, .context = 1, .architecture = config};
  LanguageModel language{apps::make_model(settings, kVocab, rng), apps::Vocabulary::of_numbers(kVocab), {}};
  stir(language.model, rng);
  return language;
}

const nn::TransformerConfig kGPT2{
    .channels = 24, .heads = 3, .norm = nn::NormKind::layer, .attention_bias = true, .tied_head = true};
const nn::TransformerConfig kLlama{.channels = 24,
                                   .heads = 4,
                                   .hidden = 27,
                                   .kv_heads = 2,
                                   .positions = nn::PositionKind::rotary,
                                   .activation = nn::Activation::swiglu,
                                   .mlp_bias = false};

nn::TransformerConfig with_windows(std::vector<std::int64_t> windows) {
  nn::TransformerConfig config = kLlama;
  config.windows = std::move(windows);
  return config;
}

/// DeepSeek-V4's attention, of which each layer is compressed as given.
nn::TransformerConfig compressed(std::vector<nn::CompressionSettings> compressions) {
  nn::TransformerConfig config = kLlama;
  config.kv_heads = 1;
  config.head_size = 16;
  config.rotary_share = 0.25;
  config.window = 5;
  config.qk_norm = config.shared_kv = config.attention_sinks = true;
  config.query_rank = 10;
  config.compressions = std::move(compressions);
  return config;
}

TEST(Generation, WritesAsManyTokensAsAskedForWithAndWithoutACache) {
  const nn::CompressionSettings sparse{
      .rate = 4, .overlapping = true, .index_heads = 2, .index_size = 6, .index_top = 3};
  using Overlap = std::optional<double>;
  for (const nn::TransformerConfig& config :
       {kGPT2, kLlama, with_windows({3, 0}), with_windows({100}), compressed({{}}), compressed({sparse, {.rate = 7}})})
    for (const auto& [context, overlap] :
         {std::pair(1, Overlap()), {9, Overlap()}, {9, 0.0}, {9, 0.3}, {9, 1.0}, {70, Overlap()}}) {
      SCOPED_TRACE(testing::Message() << "context " << context << ", overlap " << overlap.value_or(-1));
      const LanguageModel language = with_architecture(config, context);
      const std::int64_t tokens = 2 * context + 70;
      Generated result;
      const Ids ids = written(language, {1, 2}, {.tokens = tokens, .overlap = overlap}, &result);
      EXPECT_EQ(ids, written(language, {1, 2}, {.tokens = tokens, .cache = false, .overlap = overlap}));
      EXPECT_THAT(ids, SizeIs(tokens));
      EXPECT_EQ(result.end, End::tokens);
      EXPECT_EQ(result.written, tokens);
    }
}

/// The most likely ids after `ids`, by forward passes over what is in the context.
Ids most_likely_by_contexts(const apps::Model& model, Ids ids, std::int64_t tokens, std::int64_t again) {
  const BatchInvariant same_bits;
  Ids context = ids, result;
  while (std::ssize(result) < tokens) {
    if (std::ssize(context) > model.config.context) context.erase(context.begin(), context.end() - again);
    const Tensor all = Tensor::of<std::int32_t>({1, std::ssize(context)}, context);
    result.push_back(nn::most_likely(model.logits(all).value().select(1, -1).contiguous()));
    context.push_back(result.back());
  }
  return result;
}

TEST(Generation, ReadsTheEndOfAFullContextAgain) {
  for (const nn::TransformerConfig& config : {kGPT2, kLlama, compressed({{.rate = 2}})}) {
    const LanguageModel language = with_architecture(config, 10);
    for (const auto& [overlap, again] : {std::pair(0.0, 1), {0.24, 2}, {0.5, 5}, {0.9, 9}, {1.0, 10}})
      EXPECT_EQ(written(language, {1, 2, 3}, {.tokens = 60, .greedy = true, .overlap = overlap}),
                most_likely_by_contexts(language.model, {1, 2, 3}, 60, again));
  }
  for (const nn::TransformerConfig& config : {kGPT2, compressed({{}, {.rate = 2}})}) {
    const LanguageModel language = with_architecture(config, 11);
    EXPECT_EQ(written(language, {1}, {.tokens = 60, .greedy = true}),
              most_likely_by_contexts(language.model, {1}, 60, 6));
  }
}

TEST(Generation, SlidesOverTextsWithRotaryPositions) {
  for (const auto& [windows, sliding] :
       {std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>({}, {10}), {{3, 0}, {3, 10}}, {{100}, {10}}}) {
    const LanguageModel language = with_architecture(with_windows(windows), 10);
    EXPECT_EQ(written(language, {1, 2, 3}, {.tokens = 90, .greedy = true}),
              most_likely_by_contexts(with_architecture(with_windows(sliding), 1000).model, {1, 2, 3}, 90, 0));
    EXPECT_EQ(language.model.config.context, 10);
  }
}

TEST(Generation, FillsTheContextToItsLastPosition) {
  for (const nn::TransformerConfig& config : {kGPT2, kLlama, compressed({{.rate = 2}})}) {
    const LanguageModel language = with_architecture(config, 10);
    const Ids all = written(language, {1, 2, 3}, {.tokens = 8, .greedy = true});  // the last from 10 ids
    EXPECT_EQ(all, most_likely_by_contexts(language.model, {1, 2, 3}, 8, 0));
    EXPECT_EQ(all, written(language, {1, 2, 3}, {.tokens = 8, .greedy = true, .overlap = 0}));
  }
}

TEST(Generation, ReadsAPromptOfAnyLengthAsTheSameTextWritten) {
  Generated result;
  for (const bool cache : {true, false})
    for (const nn::TransformerConfig& config : {kGPT2, kLlama, compressed({{.rate = 2}})}) {
      const LanguageModel language = with_architecture(config, 10);
      const Ids all = written(language, {1}, {.tokens = 50, .greedy = true});
      Ids prompt{1};
      for (std::ptrdiff_t count = 1; count < 50; ++count) {
        prompt.push_back(all[static_cast<std::size_t>(count) - 1]);
        EXPECT_EQ(written(language, prompt, {.tokens = 50 - count, .greedy = true, .cache = cache}, &result),
                  Ids(all.begin() + count, all.end()));
        EXPECT_EQ(result.unread + result.read, count + 1);
      }
    }
}

TEST(Generation, CountsWhatItReadsOfAPrompt) {
  const LanguageModel gpt2 = with_architecture(kGPT2, 10), llama = with_architecture(kLlama, 10);
  const auto read = [](const LanguageModel& language, std::size_t length) {
    Generated result;
    written(language, Ids(length, 1), {.tokens = 1}, &result);
    return std::pair(result.unread, result.read);
  };
  EXPECT_THAT(read(gpt2, 10), Pair(0, 10));
  EXPECT_THAT(read(gpt2, 11), Pair(6, 5));
  EXPECT_THAT(read(gpt2, 16), Pair(6, 10));
  EXPECT_THAT(read(gpt2, 17), Pair(12, 5));
  EXPECT_THAT(read(llama, 17), Pair(0, 17));
}

TEST(Generation, EndsWithATokenThatEndsTexts) {
  LanguageModel language = small_model("residual");
  const Ids all = written(language, {1}, {.tokens = 20});
  language.ends = {all[5]};
  Generated result;
  const auto first = std::ranges::find(all, all[5]);
  EXPECT_EQ(written(language, {1}, {.tokens = 20}, &result), Ids(all.begin(), first));
  EXPECT_EQ(result.end, End::end_of_text);
  int used = 0;
  EXPECT_EQ(generate(small_model("residual"), {1}, {.tokens = 20}, [&](std::int32_t) { return ++used < 3; }).end,
            End::stopped);
  EXPECT_EQ(used, 3);
}

TEST(Generation, RefusesPromptsThatTheModelCannotReadAndSharesThatAreNone) {
  const LanguageModel language = small_model("residual");
  const auto message = [&](const Ids& prompt) { return message_of([&] { written(language, prompt, {}); }); };
  EXPECT_EQ(message({1, 13}), "--prompt: has the id 13 but the model knows 13");
  EXPECT_EQ(message({}), "--prompt: must have a token");
  for (const double overlap : {-0.01, 1.01, std::nan("")})
    EXPECT_EQ(message_of([&] { written(language, {1}, {.overlap = overlap}); }),
              fmt::format("--overlap: must be in [0, 1] but is {}", overlap));
}

TEST(Generation, SaysThatTheModelIsNotFinite) {
  LanguageModel language = small_model("residual");
  language.model.norm.weight = full({16}, std::nan(""), DType::f32);
  EXPECT_THROW(written(language, {1}, {}), apps::NonFiniteError);
}

}  // namespace
}  // namespace braid::generate
