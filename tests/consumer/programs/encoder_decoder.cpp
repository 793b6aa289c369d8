// An encoder and a decoder with cross attention learn to reverse sequences, by teacher forcing.
#include <fmt/format.h>

#include <braid/braid.h>

using namespace braid;
constexpr std::int64_t kLength = 8, kSymbols = 10, kStart = 10, C = 32;

struct Reverser {
  nn::Embedding symbols, places;
  nn::MultiHeadAttention encoder, decoder, cross;  // only the decoder is causal
  nn::Linear head;

  Var embed(const Tensor& ids) const { return symbols(ids) + slice(places.weight, 0, 0, ids.size(1)); }
  /// source [B, S], target [B, T] from kStart on -> logits [B, T, kSymbols] of what follows.
  Var operator()(const Tensor& source, const Tensor& target) const {
    const Var a = embed(source), memory = a + encoder(a);
    const Var b = embed(target), x = b + decoder(b);
    return head(x + cross(x, {.memory = memory}));
  }
  void params(auto&& visit) {
    visit("symbols", symbols), visit("places", places), visit("encoder", encoder);
    visit("decoder", decoder), visit("cross", cross), visit("head", head);
  }
};

int main() {
  Rng rng(1);
  const auto table = [&](std::int64_t rows) { return nn::Embedding(rows, C, rng); };
  const nn::AttentionSettings all{.causal = false};
  Reverser model{table(kSymbols + 1), table(kLength),   {C, 4, rng, all},
                 {C, 4, rng},         {C, 4, rng, all}, {C, kSymbols, rng}};
  nn::AdamW optimizer({.lr = 0.003});
  const auto step = value_and_grad([](const Reverser& m, const Tensor& source, const Tensor& target) {
    return cross_entropy(m(source, pad(slice(target, 1, 0, -1), 1, 1, 0, kStart)), target);
  });
  for (int i = 0; i <= 200; ++i) {
    const Tensor source = randint(0, kSymbols, {64, kLength}, rng);
    const auto [loss, grads] = step(model, source, flip(source, 1));
    optimizer.step(model, grads);
    if (i % 50 == 0) fmt::print("step {:3}  loss {:.4f}\n", i, loss);
  }
  const Tensor source = randint(0, kSymbols, {100, kLength}, rng);
  Tensor said = full({100, 1}, kStart, DType::i32);  // then what the model says itself
  for (int t = 0; t < kLength; ++t) said = concat({said, argmax(model(source, said), -1).slice(1, t, t + 1)}, 1);
  const double right = mean((said.slice(1, 1, kLength + 1) == flip(source, 1)).to(DType::f32)).item();
  fmt::print("right: {:.1f} %\n", 100 * right);
  return right > 0.95 ? 0 : 1;
}
