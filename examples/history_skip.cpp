// A stack of layers whose skip connections mix the last states: MHCSkip in a loop, and the same with wrap_layers.
#include <vector>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

/// A pre-norm MLP.
struct Layer {
  nn::RMSNorm norm;
  nn::MLP mlp;

  explicit Layer(Rng& rng) : norm(16), mlp(16, 32, rng) {}
  Var operator()(const Var& x) const { return mlp(norm(x)); }

  void params(auto&& visit) {
    visit("norm", norm);
    visit("mlp", mlp);
  }
};

void run() {
  Rng rng(1);
  std::vector<Layer> layers;
  for (int i = 0; i < 6; ++i) layers.emplace_back(rng);
  const mhc::MHCSkipSettings settings{.constraint = mhc::identity_constraint(0.1), .init = mhc::SkipInit::uniform};
  const Tensor x0 = randn({32, 16}, rng), target = randn({32, 16}, rng);

  // By hand: one skip for all layers, the history in a buffer.
  const mhc::MHCSkip skip(settings);
  mhc::HistoryBuffer history(settings.max_history);
  Var x = x0;
  for (const Layer& layer : layers) {
    history.append(x);
    x = skip(layer(x), history);
  }
  fmt::print("by hand: {} layers, the last {} states weigh {}\n", layers.size(), history.size(),
             skip.weights(history.size()).value());

  // The same as a module in which every layer has its own skip; trained.
  auto stack = mhc::wrap_layers(layers, settings);
  fmt::print("as a module: equal outputs, {}\n", identical(stack(x0).value(), x.value()));
  nn::AdamW optimizer({.lr = 1e-2, .weight_decay = 0});
  const auto step = value_and_grad(
      [](const mhc::SkipStack<Layer>& m, const Tensor& x, const Tensor& y) { return mse_loss(m(x), y); });
  for (int i = 0; i <= 200; ++i) {
    const auto [loss, grads] = step(stack, x0, target);
    optimizer.step(stack, grads);
    if (i % 50 == 0) fmt::print("step {:3}  loss {:.4f}\n", i, loss);
  }
  fmt::print("weights of the last states, oldest first:\n");
  for (std::size_t i = 0; i < stack.blocks.size(); ++i) {
    const auto states = std::min<std::int64_t>(static_cast<std::int64_t>(i) + 1, settings.max_history);
    fmt::print("  layer {}: {}\n", i, stack.blocks[i].skip.weights(states).value());
  }
}

int main(int argc, char** argv) {
  return apps::run_main("history_skip", "Skip connections over the history of a stack of layers.", argc, argv, run);
}
