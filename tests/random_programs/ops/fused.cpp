#include <algorithm>

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

std::vector<int> two_equals(Builder& b) {
  const int x = b.any();
  return {x, b.of_shape(b.shape(x))};
}

/// A shape [B, T, H, D] of few elements.
Shape of_heads(std::int64_t channels, Rng& rng) { return {1 + rng.below(2), rng.below(4), 1 + rng.below(2), channels}; }

std::vector<int> heads(Builder& b) { return {b.of_shape(of_heads(2 + 2 * b.rng().below(2), b.rng()))}; }

std::vector<int> queries_keys_values(Builder& b) {
  const Shape shape = of_heads(1 + b.rng().below(3), b.rng());
  return {b.bounded(b.of_shape(shape), 4), b.bounded(b.of_shape(shape), 4), b.of_shape(shape)};
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

}  // namespace

std::vector<Op> fused_ops() {
  return {
      {"rms_norm", normalized(0), epsilon, [](Vars x, const Settings& s) { return rms_norm(x[0], s[0].number); }},
      {"rms_norm", normalized(1), epsilon, [](Vars x, const Settings& s) { return rms_norm(x[0], x[1], s[0].number); }},
      {"layer_norm", normalized(0), epsilon, [](Vars x, const Settings& s) { return layer_norm(x[0], s[0].number); }},
      {"layer_norm", normalized(2), epsilon,
       [](Vars x, const Settings& s) { return layer_norm(x[0], x[1], x[2], s[0].number); }},
      {"rotary_embedding", heads, base_and_offset,
       [](Vars x, const Settings& s) { return rotary_embedding(x[0], s[0].number, s[1].integer()); }},
      {"mse_loss", two_equals, none, [](Vars x, const Settings&) { return mse_loss(x[0], x[1]); }},
      {"attention", queries_keys_values, none, [](Vars x, const Settings&) { return attention(x[0], x[1], x[2]); }},
      {"cross_entropy", one(has_axes), targets,
       [](Vars x, const Settings& s) { return cross_entropy(x[0], s[0].ids, -1); }, "cross_entropy($0, #0, -1)"},
  };
}

}  // namespace braid::programs
