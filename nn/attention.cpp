#include <braid/nn/attention.h>

#include <braid/autograd/ops/attention.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/rotary_embedding.h>

namespace braid::nn {
namespace {

std::int64_t checked_channels(std::int64_t channels, int heads, bool rotary) {
  check_value(channels >= 1 && heads >= 1 && channels % heads == 0,
              "MultiHeadAttention: heads must divide channels but channels is {} and heads is {}", channels, heads);
  check_value(!rotary || channels / heads % 2 == 0,
              "MultiHeadAttention: rotary needs an even number of channels per head but there are {}",
              channels / heads);
  return channels;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t channels, int heads, Rng& rng, const AttentionSettings& settings)
    : heads(heads),
      rotary(settings.rotary),
      rotary_base(settings.rotary_base),
      q(checked_channels(channels, heads, rotary), channels, rng, {settings.bias, settings.dtype}),
      k(channels, channels, rng, {settings.bias, settings.dtype}),
      v(channels, channels, rng, {settings.bias, settings.dtype}),
      o(channels, channels, rng, {settings.bias, settings.dtype}) {}

Var MultiHeadAttention::operator()(const Var& x) const {
  check_shape(x.rank() == 3, "MultiHeadAttention: x must have shape [B, T, C] but has {}", x.shape());
  const Shape by_head{x.size(0), x.size(1), heads, x.size(2) / heads};
  auto split = [&](const Var& y) { return reshape(y, by_head); };
  auto rotate = [&](const Var& y) { return rotary ? rotary_embedding(y, rotary_base) : y; };
  const Var mixed = attention(rotate(split(q(x))), rotate(split(k(x))), split(v(x)));
  return o(reshape(mixed, x.shape()));
}

}  // namespace braid::nn
