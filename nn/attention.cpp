#include <braid/nn/attention.h>

#include <vector>

#include <braid/autograd/ops/attention.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/slice.h>

namespace braid::nn {

AttentionSettings detail::complete(const char* module, std::int64_t channels, int heads, AttentionSettings settings) {
  check_value(channels >= 1 && heads >= 1 && (settings.head_size || channels % heads == 0),
              "{}: heads must divide channels but channels is {} and heads is {}", module, channels, heads);
  if (!settings.head_size) settings.head_size = channels / heads;
  if (!settings.kv_heads) settings.kv_heads = heads;
  check_value(*settings.head_size >= 1, "{}: head_size must be at least 1 but is {}", module, *settings.head_size);
  check_value(*settings.kv_heads >= 1 && heads % *settings.kv_heads == 0,
              "{}: kv_heads must divide heads but heads is {} and kv_heads is {}", module, heads, *settings.kv_heads);
  check_value(!settings.rotary || *settings.head_size % 2 == 0,
              "{}: rotary positions need an even head_size but it is {}", module, *settings.head_size);
  return settings;
}

MultiHeadAttention::MultiHeadAttention(std::int64_t channels, int heads, Rng& rng, const AttentionSettings& chosen)
    : heads(heads),
      settings(detail::complete("MultiHeadAttention", channels, heads, chosen)),
      q(channels, heads * head_size(), rng, {settings.bias, settings.dtype}),
      k(channels, *settings.kv_heads * head_size(), rng, {settings.bias, settings.dtype}),
      v(channels, *settings.kv_heads * head_size(), rng, {settings.bias, settings.dtype}),
      o(heads * head_size(), channels, rng, {settings.bias, settings.dtype}) {
  if (!settings.qk_norm) return;
  q_norm.emplace(head_size(), NormSettings{settings.norm_eps, settings.dtype});
  k_norm = q_norm;
}

MultiHeadAttention::Projected MultiHeadAttention::project(const Var& x, std::int64_t position) const {
  check_shape(x.rank() == 3, "MultiHeadAttention: x must have shape [B, T, C] but has {}", x.shape());
  const auto split = [&](const Var& y, int count) { return reshape(y, {x.size(0), x.size(1), count, head_size()}); };
  const auto turn = [&](Var y, const std::optional<RMSNorm>& norm) {
    if (norm) y = (*norm)(y);
    return settings.rotary ? rotary_embedding(y, settings.rotary_base, position, settings.rotary_layout) : y;
  };
  const int kv_heads = *settings.kv_heads;
  return {turn(split(q(x), heads), q_norm), turn(split(k(x), kv_heads), k_norm), split(v(x), kv_heads)};
}

Var MultiHeadAttention::output(const Var& mixed) const {
  return o(reshape(mixed, {mixed.size(0), mixed.size(1), mixed.size(2) * mixed.size(3)}));
}

Var MultiHeadAttention::operator()(const Var& x) const {
  const auto [queries, keys, values] = project(x, 0);
  return output(attention(queries, keys, values));
}

Var MultiHeadAttention::operator()(const Var& x, LayerCache& cache, std::int64_t position) const {
  const auto [queries, keys, values] = project(x, position);
  cache.write(position, keys.value(), values.value());
  const std::int64_t length = position + x.size(1);
  std::vector<Var> mixed;  // one sequence at a time, whose keys are contiguous
  for (std::int64_t b = 0; b < x.size(0); ++b)
    mixed.push_back(attention(slice(queries, 0, b, b + 1), cache.keys(b, length), cache.values(b, length)));
  return output(mixed.size() == 1 ? mixed.front() : concat(mixed, 0));
}

}  // namespace braid::nn
