// A convolutional network with group norms and hyper-connections tells falling, steady and rising tones apart.
#include <fmt/format.h>

#include <braid/braid.h>

using namespace braid;

struct Layer {
  nn::GroupNorm norm;
  nn::Conv1d conv;

  Layer(std::int64_t c, std::int64_t dilation, Rng& rng)
      : norm(4, c), conv(c, c, 3, rng, {.dilation = dilation, .padding = dilation}) {}
  Var operator()(const Var& x) const { return conv(silu(norm(x))); }  // [B, T, C]
  void params(auto&& visit) { visit("norm", norm), visit("conv", conv); }
};

struct ConvNet {
  nn::Conv1d in;
  std::vector<mhc::Rewired<Layer, mhc::ManifoldConstrainedHC>> layers;
  nn::Linear out;

  ConvNet(std::int64_t c, int count, Rng& rng) : in(1, c, 7, rng, {.padding = 3}), out(c, 3, rng) {
    for (int i = 0; i < count; ++i) layers.push_back({Layer(c, 1 << i, rng), {c, 4, rng, {.phi_std = 0.02}}});
  }
  Var operator()(const Var& wave) const {  // [B, T, 1] -> logits [B, 3]
    auto x = layers.front().connection.open(in(wave));
    for (const auto& layer : layers) x = layer(x);
    return out(mean(layers.back().connection.close(x), 1));
  }
  void params(auto&& visit) { visit("in", in), visit("layers", layers), visit("out", out); }
};

int main() {
  Rng rng(1);
  // Noisy tones, [n, 64, 1], whose frequency falls, stays or rises.
  const auto draw = [&](const Tensor& kinds) {
    const std::int64_t n = kinds.size(0);
    const Tensor t = arange(64), slope = (kinds.to(DType::f32) - 1.0).value().expand_dims(1) * 0.004;
    const Tensor start = rand({n, 1}, rng) * 0.4 + 0.5, phase = rand({n, 1}, rng) * 6.28;
    return expand_dims(sin(phase + start * t + slope * (t - 32.0) * (t - 32.0)) + randn({n, 64}, rng) * 0.3, -1);
  };
  ConvNet model(16, 4, rng);
  nn::AdamW optimizer({.lr = 0.003, .decays = nn::decay_weights_only});
  const auto step =
      value_and_grad([](const ConvNet& m, const Tensor& x, const Tensor& y) { return cross_entropy(m(x), y); });
  for (int i = 0; i <= 200; ++i) {
    const Tensor kinds = randint(0, 3, {32}, rng);
    const auto [loss, grads] = step(model, draw(kinds), kinds);
    optimizer.step(model, grads);
    if (i % 50 == 0) fmt::print("step {:3}  loss {:.4f}\n", i, loss);
  }
  const Tensor kinds = randint(0, 3, {300}, rng);
  const double right = mean((argmax(model(draw(kinds)), -1) == kinds).to(DType::f32)).item();
  fmt::print("right: {:.1f} %\n", 100 * right);
  return right > 0.95 ? 0 : 1;
}
