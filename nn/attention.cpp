#include <braid/nn/attention.h>

#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/slice.h>

namespace braid::nn {
namespace {

std::int64_t rotary_pairs(const AttentionSettings& s) {
  return std::llround(s.rotary_share * static_cast<double>(*s.head_size) / 2);
}

/// 2^(-8 h / n) for h = 1 .. n, n the largest power of two up to `heads`, then every second one of 2n such slopes.
Tensor alibi_slopes(int heads, DType dtype) {
  const int n = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  std::vector<double> slopes;
  for (int i = 0; i < heads; ++i)
    slopes.push_back(std::exp2(i < n ? -8.0 * (i + 1) / n : -4.0 * (2 * (i - n) + 1) / n));
  return Tensor::of<double>({heads}, std::span<const double>(slopes)).to(dtype);
}

}  // namespace

AttentionSettings detail::complete(const char* module, std::int64_t channels, int heads, AttentionSettings settings) {
  check_value(channels >= 1 && heads >= 1 && (settings.head_size || channels % heads == 0),
              "{}: heads must divide channels but channels is {} and heads is {}", module, channels, heads);
  if (!settings.head_size) settings.head_size = channels / heads;
  if (!settings.kv_heads) settings.kv_heads = heads;
  check_value(*settings.head_size >= 1, "{}: head_size must be at least 1 but is {}", module, *settings.head_size);
  check_value(*settings.kv_heads >= 1 && heads % *settings.kv_heads == 0,
              "{}: kv_heads must divide heads but heads is {} and kv_heads is {}", module, heads, *settings.kv_heads);
  const double rotated = settings.rotary_share * static_cast<double>(*settings.head_size);
  check_value(!settings.rotary || (settings.rotary_share > 0 && settings.rotary_share <= 1 &&
                                   std::abs(2.0 * static_cast<double>(rotary_pairs(settings)) - rotated) < 1e-6),
              "{}: rotary positions need an even part of a head but head_size is {} and rotary_share {}", module,
              *settings.head_size, settings.rotary_share);
  if (settings.rotary) scaled_turns(rotary_pairs(settings), settings.rotary_base, settings.rotary_scaling);
  check_value(
      settings.window >= 0 && settings.softcap >= 0 && std::isfinite(settings.softcap + settings.scale) &&
          0 <= settings.dropout && settings.dropout < 1,
      "{}: window and softcap must not be negative, scale finite and dropout in [0, 1) but they are {}, {}, {}, {}",
      module, settings.window, settings.softcap, settings.scale, settings.dropout);
  check_value(settings.causal || (settings.window == 0 && !settings.alibi), "{}: a window and ALiBi need causal = true",
              module);
  return settings;
}

MultiHeadAttention::MultiHeadAttention(std::int64_t channels, int heads, Rng& rng, const AttentionSettings& chosen)
    : heads(heads),
      settings(detail::complete("MultiHeadAttention", channels, heads, chosen)),
      q(channels, heads * head_size(), rng, {settings.bias, settings.dtype}),
      k(settings.memory_channels.value_or(channels), *settings.kv_heads * head_size(), rng,
        {settings.bias, settings.dtype}),
      v(settings.memory_channels.value_or(channels), *settings.kv_heads * head_size(), rng,
        {settings.bias, settings.dtype}),
      o(heads * head_size(), channels, rng, {settings.bias, settings.dtype}) {
  if (settings.sinks) sinks = zeros({heads}, settings.dtype);
  if (!settings.qk_norm) return;
  q_norm.emplace(head_size(), NormSettings{settings.norm_eps, settings.dtype});
  k_norm = q_norm;
}

AttentionOptions MultiHeadAttention::options() const {
  return {.causal = settings.causal,
          .window = settings.window,
          .scale = settings.scale,
          .softcap = settings.softcap,
          .sinks = sinks,
          .alibi = settings.alibi ? alibi_slopes(heads, settings.dtype) : Tensor()};
}

std::array<Var, 3> MultiHeadAttention::project(const Var& x, const Var& memory, std::int64_t position) const {
  check_shape(x.rank() == 3, "MultiHeadAttention: x must have shape [B, T, C] but has {}", x.shape());
  check_shape(memory.rank() == 3, "MultiHeadAttention: memory must have shape [B, S, C] but has {}", memory.shape());
  const auto split = [&](const Var& y, int count) { return reshape(y, {y.size(0), y.size(1), count, head_size()}); };
  RotaryTurns turns;
  if (settings.rotary) turns = scaled_turns(rotary_pairs(settings), settings.rotary_base, settings.rotary_scaling);
  turns.layout = settings.rotary_layout;
  const auto turn = [&](Var y, const std::optional<RMSNorm>& norm) {
    if (norm) y = (*norm)(y);
    return settings.rotary ? rotary_embedding(y, turns, position) : y;
  };
  const int kv_heads = *settings.kv_heads;
  return {turn(split(q(x), heads), q_norm), turn(split(k(memory), kv_heads), k_norm), split(v(memory), kv_heads)};
}

Var MultiHeadAttention::output(const Var& mixed) const {
  return o(reshape(mixed, {mixed.size(0), mixed.size(1), mixed.size(2) * mixed.size(3)}));
}

Var MultiHeadAttention::operator()(const Var& x, const AttentionCall& call) const {
  const bool crosses = call.memory.value().defined();
  check_value(!crosses || !settings.causal, "MultiHeadAttention: a memory needs a module with causal = false");
  AttentionOptions how = options();
  how.mask = call.mask;
  if (call.rng != nullptr) how.dropout = settings.dropout, how.rng = call.rng;
  const auto [queries, keys, values] = project(x, crosses ? call.memory : x, 0);
  return output(attention(queries, keys, values, how));
}

Var MultiHeadAttention::operator()(const Var& x, LayerCache& cache, std::int64_t position) const {
  check_value(settings.causal, "MultiHeadAttention: a cache needs a module with causal = true");
  const auto [queries, keys, values] = project(x, x, position);
  cache.write(position, keys.value(), values.value(), settings.window);
  const std::int64_t length = position + x.size(1);
  const AttentionOptions how = options();
  std::vector<Var> mixed;  // one sequence at a time, whose keys are contiguous
  for (std::int64_t b = 0; b < x.size(0); ++b)
    mixed.push_back(attention(slice(queries, 0, b, b + 1), cache.keys(b, length), cache.values(b, length), how));
  return output(mixed.size() == 1 ? mixed.front() : concat(mixed, 0));
}

}  // namespace braid::nn
