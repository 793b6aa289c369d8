// Lists the time of a training step, op by op.
#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

void run() {
  Rng rng(1);
  using Model = nn::Transformer<mhc::ManifoldConstrainedHC>;
  Model model({.context = 64, .channels = 64, .layers = 2, .heads = 4}, rng,
              [&](int) { return mhc::ManifoldConstrainedHC(64, 4, rng, {.phi_std = 0.02}); });
  const Tensor tokens = randint(0, 65, {8, 64}, rng), targets = randint(0, 65, {8, 64}, rng);
  const auto loss = [](const Model& m, const Tensor& x, const Tensor& y) { return m.loss(x, y); };
  nn::AdamW optimizer;

  Profile profile;
  const auto step = value_and_grad(loss, &profile);
  for (int i = 0; i < 11; ++i) {
    if (i == 1) profile = {};  // without the first step, which allocates memory
    profile.start();
    auto [value, grads] = step(model, tokens, targets);
    optimizer.step(model, grads);
    profile.lap("(optimizer)");
  }
  fmt::print("{}", profile.table());
}

int main(int argc, char** argv) {
  return apps::run_main("profile", "Lists the time of a training step, op by op.", argc, argv, run);
}
