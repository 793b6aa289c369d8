#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <braid/nn/sampling.h>

#include "language_model.h"

namespace braid::generate {

struct GenerationSettings {
  std::int64_t tokens = 200;
  nn::SamplingSettings sampling = {};
  bool greedy = false;  ///< always the most likely id
  std::uint64_t seed = 1;
  bool cache = true;                   ///< false: reads all tokens again for each new one; the same bits
  std::optional<double> overlap = {};  ///< see tokens_read_again()
};

/// How many of the last tokens are read again, as the start of the next context, when a text has filled one: the share
/// `overlap` of it, by default half, but at least one. 0: none, since the context slides: each token attends to the
/// last ones. That is the default for rotary positions, which have no end, unless attention is compressed, whose
/// entries reach back to the first token. Throws ValueError unless overlap is in [0, 1].
std::int64_t tokens_read_again(const nn::TransformerConfig& config, std::optional<double> overlap);

/// The reason why generation ended.
enum class End { tokens, end_of_text, stopped };

struct Generated {
  End end = End::tokens;
  std::int64_t unread = 0;             ///< tokens at the start of a prompt longer than the context
  std::int64_t read = 0, written = 0;  ///< numbers of tokens
  double seconds_reading = 0, seconds_writing = 0;
};

/// Continues a prompt of at least one id until the requested number of tokens, the end of the text, or until `use`
/// returns false for an id. Which ids are the context of the next one depends on their number alone, whether they
/// come from the prompt or were written. Throws ValueError when the prompt has an id that the model does not know,
/// NonFiniteError when a logit is not finite.
Generated generate(const LanguageModel& language, const std::vector<std::int32_t>& prompt,
                   const GenerationSettings& settings, const std::function<bool(std::int32_t)>& use);

}  // namespace braid::generate
