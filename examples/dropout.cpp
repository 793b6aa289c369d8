// Dropout in a training step: other elements in each step, the same ones where a checkpoint computes again.
#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

struct Curve {
  nn::Linear in, hidden, out;

  /// Drops where it gets an rng: in training.
  Var operator()(const Var& x, Rng* rng = nullptr) const {
    const Var h = tanh(in(x));
    return out(tanh(hidden(rng != nullptr ? dropout(h, 0.1, *rng) : h)));
  }

  void params(auto&& visit) {
    visit("in", in);
    visit("hidden", hidden);
    visit("out", out);
  }
};

/// Keeps x alone for the backward pass, which evaluates the curve again with a copy of the same rng.
Var with_checkpoint(const Curve& curve, const Var& x, Rng& rng) {
  return checkpoint([](const Curve& c, const Var& v, Rng r) { return c(v, &r); }, curve, x, rng.split());
}

void run() {
  Rng rng(1);
  const Tensor x = rand({256, 1}, rng) * 6.0 - 3.0, y = tanh(2.0 * x) * x;
  Curve model{nn::Linear(1, 64, rng), nn::Linear(64, 64, rng), nn::Linear(64, 1, rng)};
  nn::AdamW optimizer({.lr = 0.003});

  Rng drops(2);  // every call of dropout advances it
  const auto step = value_and_grad([&](const Curve& m) { return mse_loss(m(x, &drops), y); });
  for (int i = 0; i <= 300; ++i) {
    const auto [loss, grads] = step(model);
    optimizer.step(model, grads);
    if (i % 100 == 0)
      fmt::print("step {:3}  loss {:.4f}, without dropout {:.4f}\n", i, loss, mse_loss(model(x), y).item());
  }

  Rng one(3), other(3);
  const auto kept = value_and_grad([&](const Curve& m) {
    Rng r = one.split();
    return sum(m(x, &r));
  })(model);
  const auto again = value_and_grad([&](const Curve& m) { return sum(with_checkpoint(m, x, other)); })(model);
  const auto same = [](const Var& a, const Var& b) { return identical(a.value(), b.value()); };
  fmt::print("the same gradients with a checkpoint: {}\n", same(kept.second.in.weight, again.second.in.weight));
}

int main(int argc, char** argv) { return apps::run_main("dropout", "Dropout in a training step.", argc, argv, run); }
