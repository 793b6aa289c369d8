#include <braid/nn/attention.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <braid/autograd/ops.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/nn/init.h>

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
  return Tensor::of<double>({heads}, slopes).to(dtype);
}

/// Which of `entries`, padded to `padded`, and of the keys from position `first` on T queries see, the first of them at
/// `position`: [B or 1, 1, T, keys] i32. `chosen` [B, T, entries]: the indexer's choice, or undefined for all closed.
Tensor seen_by(std::int64_t queries, std::int64_t position, std::int64_t entries, std::int64_t padded,
               std::int64_t first, const Tensor& chosen, const AttentionSettings& settings) {
  const std::int64_t batch = chosen.defined() ? chosen.size(0) : 1, keys = padded + position + queries - first;
  Tensor mask = zeros({batch, 1, queries, keys}, DType::i32);
  for (std::int64_t row = 0; row < batch * queries; ++row) {
    std::int32_t* sees = mask.mutable_data<std::int32_t>() + row * keys;
    const std::int64_t at = position + row % queries;
    if (chosen.defined())
      std::copy_n(chosen.data<std::int32_t>() + row * entries, entries, sees);
    else
      std::fill_n(sees, detail::closed_entries(at, settings.compression.rate, entries), 1);
    std::fill(sees + padded + detail::first_seen(at, settings.window) - first, sees + padded + at + 1 - first, 1);
  }
  return mask;
}

AttentionOptions options(const MultiHeadAttention& m) {
  return {.causal = m.settings.causal,
          .window = m.settings.window,
          .scale = m.settings.scale,
          .softcap = m.settings.softcap,
          .sinks = m.sinks,
          .alibi = m.settings.alibi ? alibi_slopes(m.heads, m.settings.dtype) : Tensor()};
}

RotaryTurns turns_of(const AttentionSettings& s) {
  RotaryTurns turns = scaled_turns(rotary_pairs(s), s.rotary_base, s.rotary_scaling);
  turns.layout = s.rotary_layout;
  turns.trailing = s.rotary_trailing;
  return turns;
}

/// What x becomes: q [B, T, heads, D], twice [B, S, kv_heads, D], and what q is made from, [B, T, query_rank or C].
struct Projected {
  Var queries, keys, values, latent;
};

Projected project(const MultiHeadAttention& m, const Var& x, const Var& memory, std::int64_t position,
                  Var* first_values) {
  const AttentionSettings& s = m.settings;
  check_shape(x.rank() == 3, "MultiHeadAttention: x must have shape [B, T, C] but has {}", x.shape());
  check_shape(memory.rank() == 3, "MultiHeadAttention: memory must have shape [B, S, C] but has {}", memory.shape());
  const auto split = [&](const Var& y, int count) { return reshape(y, {y.size(0), y.size(1), count, m.head_size()}); };
  const RotaryTurns angles = s.rotary ? turns_of(s) : RotaryTurns();
  const auto turn = [&](Var y, const std::optional<RMSNorm>& norm) {
    if (s.qk_norm) y = norm ? (*norm)(y) : rms_norm(y, s.norm_eps);
    return s.rotary ? rotary_embedding(y, angles, position) : y;
  };
  const int kv_heads = *s.kv_heads;
  const Var latent = m.q_down ? (*m.q_down_norm)((*m.q_down)(x)) : x;
  const Var queries = turn(split(m.q(latent), m.heads), m.q_norm), keys = turn(split(m.k(memory), kv_heads), m.k_norm);
  Var values = s.shared_kv ? keys : split(m.v(memory), kv_heads);
  if (s.value_residual) {
    check_value(first_values != nullptr && first_values->shape() == values.shape(),
                "MultiHeadAttention: value_residual needs first_values of shape {}", values.shape());
    const auto mixed = [](const Var& own, const Var& first, const Var& weights) {
      return slice(weights, 0, 0, 1) * first + slice(weights, 0, 1, 2) * own;
    };
    values = braid::detail::in_f32(mixed, values, *first_values, m.value_weights);
  } else if (first_values != nullptr && !first_values->value().defined()) {
    *first_values = values;
  }
  return {queries, keys, values, latent};
}

Var output(const MultiHeadAttention& m, Var mixed, std::int64_t position) {
  if (m.settings.shared_kv && m.settings.rotary) {
    RotaryTurns back = turns_of(m.settings);
    for (double& frequency : back.frequencies) frequency = -frequency;
    mixed = rotary_embedding(mixed, back, position);
  }
  const Var flat = reshape(mixed, {mixed.size(0), mixed.size(1), mixed.size(2) * mixed.size(3)});
  return m.o(m.o_down ? (*m.o_down)(flat) : flat);
}

/// What the queries, from `position` on, mix of all entries [B, n, 1, D] and of the keys up to their own. x and
/// `latent` are those of the queries, `index` the indexer's entries.
Var mix(const MultiHeadAttention& m, const Var& queries, const Var& keys, const Var& entries, const Var& x,
        const Var& latent, const Tensor& index, std::int64_t position, AttentionOptions how) {
  // Entries fill whole blocks, and keys begin at one, so that no number of them changes a bit.
  constexpr std::int64_t kBlock = detail::kKeyBlock, kQueries = 512;
  const std::int64_t length = queries.size(1), held = position + length - keys.size(1), count = entries.size(1);
  const std::int64_t padded = (count + kBlock - 1) / kBlock * kBlock;
  const Tensor blank = zeros(entries.shape().with(1, padded - count), entries.dtype());
  const std::optional<Indexer> chooser = m.indexer ? std::optional(m.indexer->constant()) : std::nullopt;
  how.window = 0;  // the mask says it
  std::vector<Var> mixed;
  for (std::int64_t begin = 0; begin < length; begin += kQueries) {  // whose masks are no larger than that
    const std::int64_t end = std::min(begin + kQueries, length), at = position + begin;
    const std::int64_t first = std::max(detail::first_seen(at, m.settings.window) / kBlock * kBlock, held);
    const auto part = [&](const Var& all) { return all.value().slice(1, begin, end); };
    const Tensor chosen = chooser ? (*chooser)(part(x), part(latent), index, turns_of(m.settings), at) : Tensor();
    how.mask = seen_by(end - begin, at, count, padded, first, chosen, m.settings);
    const Var seen = concat({entries, blank, slice(keys, 1, first - held, position + end - held)}, 1);
    mixed.push_back(attention(slice(queries, 1, begin, end), seen, seen, how));
  }
  return mixed.size() == 1 ? mixed.front() : concat(mixed, 1);
}

}  // namespace

AttentionSettings detail::complete(const char* module, std::int64_t channels, int heads, AttentionSettings s) {
  check_value(channels >= 1 && heads >= 1 && (s.head_size || channels % heads == 0),
              "{}: heads must divide channels but channels is {} and heads is {}", module, channels, heads);
  if (!s.head_size) s.head_size = channels / heads;
  if (!s.kv_heads) s.kv_heads = heads;
  check_value(*s.head_size >= 1, "{}: head_size must be at least 1 but is {}", module, *s.head_size);
  check_value(*s.kv_heads >= 1 && heads % *s.kv_heads == 0,
              "{}: kv_heads must divide heads but heads is {} and kv_heads is {}", module, heads, *s.kv_heads);
  const double rotated = s.rotary_share * static_cast<double>(*s.head_size);
  check_value(!s.rotary || (s.rotary_share > 0 && s.rotary_share <= 1 &&
                            std::abs(2.0 * static_cast<double>(rotary_pairs(s)) - rotated) < 1e-6),
              "{}: rotary positions need an even part of a head but head_size is {} and rotary_share {}", module,
              *s.head_size, s.rotary_share);
  if (s.rotary) checked(s.rotary_scaling), rotary_frequencies(1, s.rotary_base);
  check_value(
      s.window >= 0 && s.softcap >= 0 && std::isfinite(s.softcap + s.scale) && 0 <= s.dropout && s.dropout < 1,
      "{}: window and softcap must not be negative, scale finite and dropout in [0, 1) but they are {}, {}, {}, {}",
      module, s.window, s.softcap, s.scale, s.dropout);
  check_value(s.causal || (s.window == 0 && !s.alibi), "{}: a window and ALiBi need causal = true", module);
  check_value(s.query_rank >= 0 && s.output_groups >= 0 &&
                  (s.output_groups == 0 || (heads % s.output_groups == 0 && s.output_rank >= 1)),
              "{}: query_rank must not be negative, and output_groups must divide heads and have an output_rank but "
              "they are {}, {} and {} with {} heads",
              module, s.query_rank, s.output_groups, s.output_rank, heads);
  check_value(!s.shared_kv || (s.causal && !s.memory_channels),
              "{}: shared_kv needs causal = true and no memory_channels", module);
  check_value(!s.value_residual || !s.shared_kv, "{}: value_residual needs shared_kv = false", module);
  const CompressionSettings& compression = checked(module, s.compression);
  check_value(compression.rate == 0 || (s.shared_kv && *s.kv_heads == 1 && s.rotary && !s.alibi),
              "{}: compression needs shared_kv, kv_heads = 1, rotary positions and no ALiBi", module);
  check_value(compression.rate == 0 || compression.index_top == 0 || s.query_rank > 0, "{}: index_top needs query_rank",
              module);
  check_value(compression.rate == 0 || compression.index_top == 0 || compression.index_size >= 2 * rotary_pairs(s),
              "{}: index_size must be at least the {} channels that are rotated but is {}", module, 2 * rotary_pairs(s),
              compression.index_size);
  return s;
}

MultiHeadAttention::MultiHeadAttention(std::int64_t channels, int heads, Rng& rng, const AttentionSettings& chosen)
    : heads(heads),
      settings(detail::complete("MultiHeadAttention", channels, heads, chosen)),
      q(settings.query_rank > 0 ? settings.query_rank : channels, heads * head_size(), rng,
        {settings.bias, settings.dtype}),
      k(settings.memory_channels.value_or(channels), *settings.kv_heads * head_size(), rng,
        {settings.bias, settings.dtype}),
      v(k.weight.size(1), k.weight.size(0), rng, {settings.bias, settings.dtype}),
      o(settings.output_groups > 0 ? settings.output_groups * settings.output_rank : heads * head_size(), channels, rng,
        {settings.bias, settings.dtype}) {
  const AttentionSettings& s = settings;
  const auto norm = [&](std::int64_t size) { return RMSNorm(size, {s.norm_eps, s.dtype}); };
  if (s.sinks) sinks = init::constant({heads}, 0, s.dtype);
  if (s.shared_kv) v.weight = v.bias = Var();
  if (s.value_residual) value_weights = init::constant({2}, 0.5, s.dtype);
  if (s.qk_norm) k_norm = norm(head_size());
  if (s.qk_norm && !s.shared_kv) q_norm = k_norm;
  if (s.query_rank > 0) {
    q_down.emplace(channels, s.query_rank, rng, LinearSettings{s.bias, s.dtype});
    q_down_norm = norm(s.query_rank);
  }
  if (s.output_groups > 0)
    o_down.emplace(s.output_groups, heads / s.output_groups * head_size(), s.output_rank, rng, s.dtype);
  if (s.compression.rate == 0) return;
  compressor.emplace(channels, head_size(), s.compression, s.norm_eps, rng, s.dtype);
  if (s.compression.index_top > 0) indexer.emplace(channels, s.query_rank, s.compression, s.norm_eps, rng, s.dtype);
}

Var MultiHeadAttention::operator()(const Var& x, const AttentionCall& call) const {
  const bool crosses = call.memory.value().defined();
  check_value(!crosses || !settings.causal, "MultiHeadAttention: a memory needs a module with causal = false");
  AttentionOptions how = options(*this);
  how.mask = call.mask;
  if (call.rng != nullptr) how.dropout = settings.dropout, how.rng = call.rng;
  const auto [queries, keys, values, latent] = project(*this, x, crosses ? call.memory : x, 0, call.first_values);
  if (!compressor) return output(*this, attention(queries, keys, values, how), 0);
  check_value(!call.mask.defined(), "MultiHeadAttention: a mask needs a module without compression");
  const Tensor index = indexer ? indexer->constant().keys(x.value(), turns_of(settings)).value() : Tensor();
  return output(*this, mix(*this, queries, keys, (*compressor)(x, turns_of(settings)), x, latent, index, 0, how), 0);
}

Var MultiHeadAttention::operator()(const Var& x, LayerCache& cache, std::int64_t position, Var* first_values) const {
  check_cache(cache, position);
  const auto [queries, keys, values, latent] = project(*this, x, x, position, first_values);
  cache.write(position, keys.value(), settings.shared_kv ? Tensor() : values.value(), settings.window);
  const std::int64_t length = position + x.size(1);
  const Tensor all_keys = cache.keys(length), all_values = cache.values(length);
  const AttentionOptions how = options(*this);
  if (compressor) {
    const RotaryTurns turns = turns_of(settings);
    const Tensor entries = (*compressor)(x, turns, cache.compressor, position, settings.window);
    const Tensor index = indexer ? indexer->keys(x, turns, cache.indexer, position, settings.window) : Tensor();
    return output(*this, mix(*this, queries, all_keys, entries, x, latent, index, position, how), position);
  }
  std::vector<Var> mixed;  // one sequence at a time, whose keys are contiguous
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    const auto own = [&](const Tensor& all) { return all.slice(0, b, b + 1); };
    mixed.push_back(attention(slice(queries, 0, b, b + 1), own(all_keys), own(all_values), how));
  }
  return output(*this, mixed.size() == 1 ? mixed.front() : concat(mixed, 0), position);
}

void MultiHeadAttention::check_cache(const LayerCache& cache, std::int64_t position) const {
  check_value(settings.causal, "MultiHeadAttention: a cache needs a module with causal = true");
  cache.check(position, settings.window);
  if (compressor) cache.compressor.rows.check(position, compressor->kept(settings.window));
}

}  // namespace braid::nn
