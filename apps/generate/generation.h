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
  bool cache = true;  ///< false: reads all tokens again for each new one; the same bits
};

/// The reason why generation ended.
enum class End { tokens, end_of_text, context, stopped };

struct Generated {
  End end = End::tokens;
  std::int64_t read = 0, written = 0;  ///< numbers of tokens
  double seconds_reading = 0, seconds_writing = 0;
};

/// Continues a prompt of at least one id until the requested number of tokens, the end of the text or of the model's
/// context, or until `use` returns false for an id. Throws ValueError when the prompt is longer than the context or has
/// an id that the model does not know, NonFiniteError when a logit is not finite.
Generated generate(const LanguageModel& language, const std::vector<std::int32_t>& prompt,
                   const GenerationSettings& settings, const std::function<bool(std::int32_t)>& use);

}  // namespace braid::generate
