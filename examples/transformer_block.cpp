// A transformer block from its parts: attention written with the library's ops, and the module it equals.
#include <cmath>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

/// Causal self-attention, x [B, T, C] -> [B, T, C], with every step visible.
struct Attention {
  int heads;
  nn::Linear q, k, v, o;  // [C, C] each

  Attention(std::int64_t channels, int heads, Rng& rng)
      : heads(heads),
        q(channels, channels, rng, {.bias = false}),
        k(channels, channels, rng, {.bias = false}),
        v(channels, channels, rng, {.bias = false}),
        o(channels, channels, rng, {.bias = false}) {}

  Var operator()(const Var& x) const {
    const std::int64_t batch = x.size(0), tokens = x.size(1), channels = x.size(2), width = channels / heads;
    const auto split = [&](const Var& y) { return reshape(y, {batch, tokens, heads, width}); };
    const Var scores = einsum("bthd,bshd->bhts", split(q(x)), split(k(x))) / std::sqrt(static_cast<double>(width));
    const Tensor seen = tril(ones({tokens, tokens}));  // query t sees the keys 0 .. t
    const Var weights = softmax(where(seen, scores, -INFINITY));
    return o(reshape(einsum("bhts,bshd->bthd", weights, split(v(x))), {batch, tokens, channels}));
  }

  void params(auto&& visit) {
    visit("q", q);
    visit("k", k);
    visit("v", v);
    visit("o", o);
  }
};

struct Block {
  nn::RMSNorm attention_norm, mlp_norm;
  Attention attention;
  nn::MLP mlp;

  Block(std::int64_t channels, int heads, Rng& rng)
      : attention_norm(channels),
        mlp_norm(channels),
        attention(channels, heads, rng),
        mlp(channels, 4 * channels, rng) {}

  Var operator()(Var x) const {
    x = x + attention(attention_norm(x));
    return x + mlp(mlp_norm(x));
  }

  void params(auto&& visit) {
    visit("attention_norm", attention_norm);
    visit("attention", attention);
    visit("mlp_norm", mlp_norm);
    visit("mlp", mlp);
  }
};

void run() {
  const std::int64_t channels = 32;
  Rng rng(1);
  const Block block(channels, 4, rng);
  fmt::print("{}", nn::summary(block));

  // The same numbers in the library's modules, which run attention as one op.
  Rng again(1);
  nn::TransformerBlock<> fused{{nn::RMSNorm(channels), nn::MultiHeadAttention(channels, 4, again), {}},
                               {nn::RMSNorm(channels), nn::MLP(channels, 4 * channels, again), {}}};
  const Tensor x = randn({2, 10, channels}, rng);
  fmt::print("largest difference to nn::TransformerBlock: {:.1e}\n",
             reduce_max(abs(block(x) - fused(x)).value()).item());

  const Block exact = nn::to_dtype(block, DType::f64);
  const Tensor short_x = randn({1, 3, channels}, rng, DType::f64);
  const GradcheckResult result =
      gradcheck_module(exact, [&](const Block& b) { return b(short_x); }, {.max_elements = 32, .directions = 4});
  fmt::print("gradcheck: {} derivatives, worst relative error {:.1e}\n", result.derivatives, result.worst);
  check<Error>(result.ok, "gradcheck: {}", result.message);

  // A sublayer passes further arguments on to its body.
  const nn::Sublayer<nn::MultiHeadAttention, mhc::ManifoldConstrainedHC> cross{
      nn::RMSNorm(channels), nn::MultiHeadAttention(channels, 4, rng, {.causal = false}),
      mhc::ManifoldConstrainedHC(channels, 4, rng, {.phi_std = 0.02})};
  const Tensor memory = randn({2, 7, channels}, rng);
  const Var y = cross.connection.close(cross(cross.connection.open(x), nn::AttentionCall{.memory = memory}));
  fmt::print("with an encoder's states: {}\n", y.shape());
}

int main(int argc, char** argv) {
  return apps::run_main("transformer_block", "A transformer block from its parts.", argc, argv, run);
}
