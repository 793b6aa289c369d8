// Fits a curve with a small network: tensors, a module, a gradient, an optimizer.
#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

struct Curve {
  nn::Linear hidden, out;
  Var operator()(const Var& x) const { return out(tanh(hidden(x))); }
  void params(auto&& visit) {
    visit("hidden", hidden);
    visit("out", out);
  }
};

void run() {
  Rng rng(1);
  const Tensor x = rand({256, 1}, rng) * 6.0 - 3.0;
  const Tensor y = tanh(2.0 * x) * x;

  Curve model{nn::Linear(1, 32, rng), nn::Linear(32, 1, rng)};
  nn::AdamW optimizer({.lr = 0.01});
  auto step = value_and_grad([](const Curve& m, const Tensor& x, const Tensor& y) { return mse_loss(m(x), y); });

  for (int i = 0; i <= 500; ++i) {
    auto [loss, grads] = step(model, x, y);  // grads is a Curve of gradients
    optimizer.step(model, grads);
    if (i % 100 == 0) fmt::print("step {:3}  loss {:.6f}\n", i, loss);
  }

  const Tensor question = Tensor::of<float>({2, 1}, {-1, 2});
  fmt::print("at -1 and 2 it says\n{}\nand should say\n{}\n", model(question), tanh(2.0 * question) * question);
}

int main(int argc, char** argv) {
  return apps::run_main("regression", "Fits a curve with a small network.", argc, argv, run);
}
