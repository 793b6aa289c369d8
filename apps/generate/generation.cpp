#include "generation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
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

/// A copy whose tokens attend to the last `context` ones, in texts of any length.
apps::Model sliding(apps::Model model) {
  for (auto& block : model.blocks) {
    std::int64_t& window = block.attention.body.settings.window;
    window = window > 0 ? std::min(window, model.config.context) : model.config.context;
  }
  model.config.context = std::numeric_limits<std::int64_t>::max();
  return model;
}

/// Runs the model over ids, with or without a cache.
class Reader {
 public:
  Reader(const apps::Model& model, const GenerationSettings& settings)
      : again_(tokens_read_again(model.config, settings.overlap)), model_(again_ > 0 ? model : sliding(model)) {
    if (settings.cache) cache_ = model_.make_cache(1);
  }

  /// The logits of the id that follows `ids`. The first of them may have been read before.
  Tensor next_logits(const Ids& ids) {
    const std::int64_t context = model_.config.context;
    while (std::ssize(ids) - first_ > context) {
      first_ += context + 1 - again_;
      if (cache_) cache_->length = 0;
    }
    const auto from = [&](std::int64_t id) { return row(std::span(ids).subspan(static_cast<std::size_t>(id))); };
    const Tensor logits = cache_ ? model_.next_logits(from(first_ + cache_->length), *cache_)
                                 : model_.logits(from(first_)).value().select(1, -1).contiguous();
    const Tensor wide = logits.to(compute_dtype(logits.dtype()));
    check<apps::NonFiniteError>(apps::is_finite(wide), "the logits after {} tokens are not finite", ids.size());
    return wide;
  }

  /// The number of ids before the context.
  std::int64_t first() const { return first_; }

 private:
  std::int64_t again_;  // tokens_read_again()
  apps::Model model_;
  std::optional<nn::KVCache> cache_;
  std::int64_t first_ = 0;
};

void check_prompt(const Ids& prompt, std::int64_t vocab) {
  check_value(!prompt.empty(), "--prompt: must have a token");
  const std::int32_t highest = std::ranges::max(prompt);
  check_value(highest < vocab, "--prompt: has the id {} but the model knows {}", highest, vocab);
}

}  // namespace

std::int64_t tokens_read_again(const nn::TransformerConfig& config, std::optional<double> overlap) {
  const bool compresses = std::ranges::any_of(config.compressions, [](const auto& c) { return c.rate > 0; });
  if (!overlap && config.positions == nn::PositionKind::rotary && !compresses) return 0;
  const double part = overlap.value_or(0.5);
  check_value(part >= 0 && part <= 1, "--overlap: must be in [0, 1] but is {}", part);
  return std::max<std::int64_t>(1, std::llround(part * static_cast<double>(config.context)));
}

Generated generate(const LanguageModel& language, const Ids& prompt, const GenerationSettings& settings,
                   const std::function<bool(std::int32_t)>& use) {
  check_prompt(prompt, language.model.config.vocab);
  const BatchInvariant with_or_without_cache;
  Reader reader(language.model, settings);
  Rng rng(settings.seed);
  Generated result;
  Ids ids = prompt;
  auto seconds = [last = Clock::now()]() mutable {
    const auto before = std::exchange(last, Clock::now());
    return std::chrono::duration<double>(last - before).count();
  };
  const auto end_with = [&](std::int32_t id) -> std::optional<End> {
    if (language.ends.contains(id)) return End::end_of_text;
    if (!use(id)) return End::stopped;
    if (result.written == settings.tokens) return End::tokens;
    return std::nullopt;
  };
  Tensor logits = reader.next_logits(ids);
  result.unread = reader.first();
  result.read = std::ssize(prompt) - result.unread;
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
