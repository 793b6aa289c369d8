#include "../../../apps/generate/generation.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/error.h>
#include <braid/nn/transformer.h>
#include <tests/nn/module_checks.h>
#include <tests/support.h>

#include "../../../apps/common/run_main.h"

namespace braid::generate {
namespace {

using testing::ElementsAre;
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
LanguageModel small_model(const std::string& kind) {
  Rng rng(3);
  apps::TrainerSettings settings{.layers = 2, .channels = 16, .heads = 2, .context = kContext};
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
                           "gated", "single-pass", "attention-residual", "frac"}) {
    SCOPED_TRACE(kind);
    const LanguageModel language = small_model(kind);
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

TEST(Generation, EndsWhereTheContextIsFull) {
  const LanguageModel language = small_model("residual");
  Generated result;
  for (const bool cache : {true, false}) {
    EXPECT_THAT(written(language, Ids(10, 1), {.tokens = 1000, .cache = cache}, &result), SizeIs(kContext - 10 + 1));
    EXPECT_EQ(result.end, End::context);
    EXPECT_THAT(written(language, Ids(kContext, 1), {.tokens = 5, .cache = cache}, &result), SizeIs(1));
  }
  EXPECT_EQ(result.read, kContext);
  written(language, Ids(10, 1), {.tokens = kContext - 10 + 1}, &result);
  EXPECT_EQ(result.end, End::tokens);
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

TEST(Generation, RefusesPromptsThatTheModelCannotRead) {
  const LanguageModel language = small_model("residual");
  const auto message = [&](const Ids& prompt) { return message_of([&] { written(language, prompt, {}); }); };
  EXPECT_EQ(message(Ids(41, 1)), "--prompt: has 41 tokens but the context of the model 40");
  EXPECT_EQ(message({1, 13}), "--prompt: has the id 13 but the model knows 13");
  EXPECT_EQ(message({}), "--prompt: must have a token");
}

TEST(Generation, SaysThatTheModelIsNotFinite) {
  LanguageModel language = small_model("residual");
  language.model.norm.weight = full({16}, std::nan(""), DType::f32);
  EXPECT_THROW(written(language, {1}, {}), apps::NonFiniteError);
}

}  // namespace
}  // namespace braid::generate
