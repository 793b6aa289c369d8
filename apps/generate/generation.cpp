#include "generation.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <braid/core/batch_invariant.h>
#include <braid/core/error.h>

#include "../common/run_main.h"

namespace braid::generate {
namespace {

using Ids = std::vector<std::int32_t>;
using Clock = std::chrono::steady_clock;

Tensor row(std::span<const std::int32_t> ids) { return Tensor::of<std::int32_t>({1, std::ssize(ids)}, ids); }

/// Runs the model over ids, with or without a cache.
class Reader {
 public:
  Reader(const apps::Model& model, bool cache) : model_(model) {
    if (cache) cache_ = model.make_cache(1);
  }

  /// The logits of the id that follows `ids`. The first of them may have been read before.
  Tensor next_logits(const Ids& ids) {
    const std::span fresh = std::span(ids).subspan(read_);
    read_ = ids.size();
    const Tensor logits =
        cache_ ? model_.next_logits(row(fresh), *cache_) : model_.logits(row(ids)).value().select(1, -1).contiguous();
    check<apps::NonFiniteError>(apps::is_finite(logits), "the logits after {} tokens are not finite", read_);
    return logits;
  }

 private:
  const apps::Model& model_;
  std::optional<nn::KVCache> cache_;
  std::size_t read_ = 0;
};

void check_prompt(const Ids& prompt, const nn::TransformerConfig& model) {
  check_value(!prompt.empty(), "--prompt: must have a token");
  check_value(std::ssize(prompt) <= model.context, "--prompt: has {} tokens but the context of the model {}",
              prompt.size(), model.context);
  const std::int32_t highest = std::ranges::max(prompt);
  check_value(highest < model.vocab, "--prompt: has the id {} but the model knows {}", highest, model.vocab);
}

}  // namespace

Generated generate(const LanguageModel& language, const Ids& prompt, const GenerationSettings& settings,
                   const std::function<bool(std::int32_t)>& use) {
  check_prompt(prompt, language.model.config);
  const BatchInvariant with_or_without_cache;
  Reader reader(language.model, settings.cache);
  Rng rng(settings.seed);
  Generated result{.read = std::ssize(prompt)};
  Ids ids = prompt;
  auto seconds = [last = Clock::now()]() mutable {
    const auto before = std::exchange(last, Clock::now());
    return std::chrono::duration<double>(last - before).count();
  };
  const auto end_with = [&](std::int32_t id) -> std::optional<End> {
    if (language.ends.contains(id)) return End::end_of_text;
    if (!use(id)) return End::stopped;
    if (result.written == settings.tokens) return End::tokens;
    if (std::ssize(ids) > language.model.config.context) return End::context;
    return std::nullopt;
  };
  Tensor logits = reader.next_logits(ids);
  result.seconds_reading = seconds();
  for (std::optional<End> end; !end;) {
    if (result.written > 0) logits = reader.next_logits(ids);
    ids.push_back(settings.greedy ? nn::most_likely(logits) : nn::sample(logits, settings.sampling, rng));
    ++result.written;
    if ((end = end_with(ids.back()))) result.end = *end;
  }
  result.seconds_writing = seconds();
  return result;
}

}  // namespace braid::generate
