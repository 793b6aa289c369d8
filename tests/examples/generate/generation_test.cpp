#include "../../../examples/generate/generation.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/error.h>
#include <tests/nn/module_checks.h>
#include <tests/support.h>

#include "../../../examples/common/run_main.h"

namespace braid::generate {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kVocab = 13, kContext = 40;

/// A small model under any connection, whose weights are large enough for the tokens to matter.
LanguageModel small_model(const std::string& kind) {
  Rng rng(3);
  examples::TrainerSettings settings{.layers = 2, .channels = 16, .heads = 2, .context = kContext};
  settings.connection.kind = kind;
  LanguageModel language{examples::make_model(settings, kVocab, rng), examples::Vocabulary::of_numbers(kVocab), {}};
  for_each_param(language.model, [&](const std::string&, Var& parameter) {
    const Tensor& value = parameter.value();
    parameter = value + 0.3 * randn(value.shape(), rng, value.dtype());
  });
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
                           "gated", "single-pass"}) {
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
  EXPECT_THROW(written(language, {1}, {}), examples::NonFiniteError);
}

}  // namespace
}  // namespace braid::generate
