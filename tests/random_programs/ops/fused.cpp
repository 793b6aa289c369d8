#include <algorithm>

#include <fmt/format.h>

#include <braid/autograd/ops.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

/// x and `weights` vectors of its last axis.
Operands normalized(int weights) {
  return [=](Builder& b) {
    const int x = b.any(has_axes);
    std::vector<int> operands{x};
    for (int i = 0; x != kNone && i < weights; ++i) operands.push_back(b.of_shape({b.shape(x)[-1]}));
    return operands;
  };
}

std::optional<Settings> epsilon(Shapes, Rng& rng) { return Settings{real(pick({1e-5, 0.0625}, rng))}; }

/// x [B, C, ...] or [B, ..., C], perhaps with a weight and a bias of its channels.
Operands with_channels(Channels channels, int weights) {
  return [=](Builder& b) {
    const int x = b.any(at_least_rank(2)), axis = channels == Channels::first ? 1 : -1;
    std::vector<int> operands{x};
    for (int i = 0; x != kNone && i < weights; ++i) operands.push_back(b.of_shape({b.shape(x)[axis]}));
    return operands;
  };
}

auto groups_and_epsilon(Channels channels) {
  return [=](Shapes x, Rng& rng) -> std::optional<Settings> {
    const std::int64_t groups = 1 + rng.below(2);
    if (x[0][channels == Channels::first ? 1 : -1] % groups != 0) return std::nullopt;
    return Settings{integer(groups), real(pick({1e-5, 0.0625}, rng))};
  };
}

std::vector<int> two_equals(Builder& b) {
  const int x = b.any();
  return {x, b.of_shape(b.shape(x))};
}

/// A shape [B, T, H, D] of few elements.
Shape of_heads(std::int64_t channels, Rng& rng) { return {1 + rng.below(2), rng.below(4), 1 + rng.below(2), channels}; }

std::vector<int> heads(Builder& b) { return {b.of_shape(of_heads(2 + 2 * b.rng().below(2), b.rng()))}; }

/// Other lengths and more heads of queries than of keys.
std::vector<int> queries_keys_values(Builder& b) {
  const Shape keys = of_heads(1 + b.rng().below(3), b.rng());
  const Shape queries = keys.with(1, b.rng().below(4)).with(2, keys[2] * (1 + b.rng().below(2)));
  return {b.bounded(b.of_shape(queries), 4), b.bounded(b.of_shape(keys), 4), b.of_shape(keys)};
}

/// Whether causal, the window, the scale, and what is hidden.
std::optional<Settings> attention_options(Shapes x, Rng& rng) {
  const bool causal = rng.below(2) == 1;
  return Settings{truth(causal), integer(causal ? rng.below(3) : 0), real(pick({0, 0.5}, rng)),
                  ids(randint(0, 3, {x[0][1], x[1][1]}, rng))};
}

std::optional<Settings> base_and_offset(Shapes x, Rng& rng) {
  if (x[0].rank() != 4 || x[0][-1] % 2 != 0) return std::nullopt;
  return Settings{real(pick({16, 10000}, rng)), integer(rng.below(4))};
}

/// Some of the targets do not count.
std::optional<Settings> targets(Shapes x, Rng& rng) {
  if (x[0][-1] == 0) return std::nullopt;
  Tensor classes = randint(-1, x[0][-1], x[0].without(-1), rng);
  return Settings{ids(classes)};
}

Setting reduction(Rng& rng) {
  const auto choice = rng.below(4);
  constexpr const char* kNames[] = {"mean", "sum", "none", "batch_mean"};
  return {fmt::format("Reduction::{}", kNames[choice]), static_cast<double>(choice)};
}

Reduction reduction_of(const Setting& setting) { return static_cast<Reduction>(setting.integer()); }

/// Targets, a reduction and a smoothing.
std::optional<Settings> smoothed_targets(Shapes x, Rng& rng) {
  std::optional<Settings> settings = targets(x, rng);
  if (settings) settings->insert(settings->end(), {reduction(rng), real(pick({0, 0.125, 0.5}, rng))});
  return settings;
}

CrossEntropySettings smoothed(const Setting& reduction, const Setting& smoothing) {
  return {.reduction = reduction_of(reduction), .label_smoothing = smoothing.number, .ignore_index = -1};
}

std::optional<Settings> reduction_alone(Shapes, Rng& rng) { return Settings{reduction(rng)}; }

std::vector<int> logits_and_shares(Builder& b) {
  const int x = b.any(has_axes);
  return x == kNone ? std::vector{kNone} : std::vector{x, b.of_shape(b.shape(x))};
}

std::vector<int> logs_and_probabilities(Builder& b) {
  const int x = b.any();
  return {x, b.positive(b.of_shape(b.shape(x)))};
}

}  // namespace

std::vector<Op> fused_ops() {
  return {
      {"rms_norm", normalized(0), epsilon, [](Vars x, const Settings& s) { return rms_norm(x[0], s[0].number); }},
      {"rms_norm", normalized(1), epsilon, [](Vars x, const Settings& s) { return rms_norm(x[0], x[1], s[0].number); }},
      {"layer_norm", normalized(0), epsilon, [](Vars x, const Settings& s) { return layer_norm(x[0], s[0].number); }},
      {"layer_norm", normalized(2), epsilon,
       [](Vars x, const Settings& s) { return layer_norm(x[0], x[1], x[2], s[0].number); }},
      {"group_norm", with_channels(Channels::last, 0), groups_and_epsilon(Channels::last),
       [](Vars x, const Settings& s) { return group_norm(x[0], s[0].integer(), s[1].number); }},
      {"group_norm", with_channels(Channels::last, 2), groups_and_epsilon(Channels::last),
       [](Vars x, const Settings& s) { return group_norm(x[0], s[0].integer(), x[1], x[2], s[1].number); },
       "group_norm($0, #0, $1, $2, #1)"},
      {"group_norm", with_channels(Channels::first, 2), groups_and_epsilon(Channels::first),
       [](Vars x, const Settings& s) {
         return group_norm(x[0], s[0].integer(), x[1], x[2], s[1].number, Channels::first);
       },
       "group_norm($0, #0, $1, $2, #1, Channels::first)"},
      {"rotary_embedding", heads, base_and_offset,
       [](Vars x, const Settings& s) { return rotary_embedding(x[0], s[0].number, s[1].integer()); }},
      {"mse_loss", two_equals, none, [](Vars x, const Settings&) { return mse_loss(x[0], x[1]); }},
      {"attention", queries_keys_values, none, [](Vars x, const Settings&) { return attention(x[0], x[1], x[2]); }},
      {"attention", queries_keys_values, attention_options,
       [](Vars x, const Settings& s) {
         return attention(
             x[0], x[1], x[2],
             {.causal = s[0].number != 0, .window = s[1].integer(), .scale = s[2].number, .mask = s[3].ids});
       },
       "attention($0, $1, $2, {.causal = #0, .window = #1, .scale = #2, .mask = #3})"},
      {"cross_entropy", one(has_axes), targets,
       [](Vars x, const Settings& s) { return cross_entropy(x[0], s[0].ids, -1); }, "cross_entropy($0, #0, -1)"},
      {"cross_entropy", one(has_axes), smoothed_targets,
       [](Vars x, const Settings& s) { return cross_entropy(x[0], s[0].ids, smoothed(s[1], s[2])); },
       "cross_entropy($0, #0, {.reduction = #1, .label_smoothing = #2, .ignore_index = -1})"},
      {"cross_entropy", logits_and_shares, reduction_alone,
       [](Vars x, const Settings& s) { return cross_entropy(x[0], x[1], {.reduction = reduction_of(s[0])}); },
       "cross_entropy($0, $1, {.reduction = #0})"},
      {"binary_cross_entropy_with_logits", two_equals, reduction_alone,
       [](Vars x, const Settings& s) { return binary_cross_entropy_with_logits(x[0], x[1], reduction_of(s[0])); }},
      {"kl_divergence", logs_and_probabilities, reduction_alone,
       [](Vars x, const Settings& s) { return kl_divergence(x[0], x[1], reduction_of(s[0])); }},
  };
}

}  // namespace braid::programs
