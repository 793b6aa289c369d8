#include <braid/nn/rotary.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <braid/core/error.h>

namespace braid::nn {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

/// The share of a frequency that stays, 0 to 1, as Llama 3 has it: by its turns over the first context.
double kept_by_llama3(double frequency, const RotaryScaling& s) {
  return std::clamp((s.first_context * frequency / kTurn - s.slow) / (s.fast - s.slow), 0.0, 1.0);
}

/// As YaRN has it: by the place of the pair between those that make `fast` and `slow` turns.
double kept_by_yarn(double pair, double pairs, double base, const RotaryScaling& s) {
  const auto pair_of = [&](double turns) {
    return pairs * std::log(s.first_context / (turns * kTurn)) / std::log(base);
  };
  double first = pair_of(s.fast), last = pair_of(s.slow);
  if (s.whole_pairs) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0), last = std::min(last, 2 * pairs - 1);
  return 1 - std::clamp((pair - first) / std::max(last - first, 0.001), 0.0, 1.0);
}

}  // namespace

const RotaryScaling& checked(const RotaryScaling& s) {
  check_value(
      s.kind == RotaryScaling::Kind::none || (s.factor >= 1 && s.first_context > 0 && 0 < s.slow && s.slow < s.fast),
      "scaled_turns: factor must be at least 1, first_context positive and 0 < slow < fast but they are {}, {}, "
      "{}, {}",
      s.factor, s.first_context, s.slow, s.fast);
  return s;
}

RotaryTurns scaled_turns(std::int64_t pairs, double base, const RotaryScaling& scaling) {
  RotaryTurns turns{rotary_frequencies(pairs, base)};
  const RotaryScaling& s = checked(scaling);
  if (s.kind == RotaryScaling::Kind::none) return turns;
  const bool yarn = s.kind == RotaryScaling::Kind::yarn;
  for (std::int64_t i = 0; i < pairs; ++i) {
    double& frequency = turns.frequencies[static_cast<std::size_t>(i)];
    const double kept =
        yarn ? kept_by_yarn(static_cast<double>(i), static_cast<double>(pairs), base, s) : kept_by_llama3(frequency, s);
    frequency = kept * frequency + (1 - kept) * frequency / s.factor;
  }
  if (yarn) turns.magnitude = s.magnitude > 0 ? s.magnitude : 0.1 * std::log(s.factor) + 1;
  return turns;
}

}  // namespace braid::nn
