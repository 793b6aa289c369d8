// Your own optimizer: Muon, which orthogonalizes the steps of matrices, beside AdamW on a small language model.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

/// Almost U V^T for x = U S V^T, without a decomposition: five iterations bring all singular values near 1.
Tensor orthogonalized(Tensor x) {
  const bool tall = x.size(0) > x.size(1);
  if (tall) x = x.transpose();
  x = x / (norm(x) + 1e-7);
  for (int i = 0; i < 5; ++i) {
    const Tensor a = matmul(x, x.transpose());
    x = 3.4445 * x + matmul(-4.7750 * a + 2.0315 * matmul(a, a), x);
  }
  return tall ? x.transpose() : x;
}

/// Muon (Keller Jordan, 2024, https://kellerjordan.github.io/posts/muon): Nesterov momentum, orthogonalized for
/// matrices; other parameters take its plain steps.
class Muon : public nn::Optimizer {
 public:
  explicit Muon(double lr, double momentum = 0.95) : Optimizer("Muon", lr, {"momentum"}), momentum_(momentum) {}

 private:
  void apply(const std::vector<Update>& updates, double grad_scale) override {
    for (const Update& u : updates) {
      const Tensor grad = grad_scale * u.grad;
      Tensor& m = u.state[0];  // "momentum"
      m = momentum_ * m + grad;
      Tensor step = grad + momentum_ * m;
      if (step.rank() == 2)
        step = orthogonalized(step) *
               std::sqrt(std::max(1.0, static_cast<double>(step.size(0)) / static_cast<double>(step.size(1))));
      *u.value = *u.value - lr() * step;
    }
  }

  double momentum_;
};

/// Losses of a model that learns to continue periodic sequences.
template <class Optimizer>
void train(const char* name, Optimizer optimizer) {
  Rng rng(1);
  nn::Transformer<> model({.vocab = 16, .context = 32, .channels = 32, .layers = 2, .heads = 4}, rng);
  const auto step = value_and_grad(
      [](const nn::Transformer<>& m, const Tensor& tokens, const Tensor& targets) { return m.loss(tokens, targets); });
  fmt::print("{:5}", name);
  for (int i = 0; i <= 200; ++i) {
    const Tensor periods = randint(0, 16, {16, 11}, rng);
    const Tensor text = repeat(periods, {1, 3});  // [16, 33]
    const auto [loss, grads] = step(model, text.slice(1, 0, 32), text.slice(1, 1, 33));
    optimizer.step(model, grads);
    if (i % 50 == 0) fmt::print("  {:.4f}", loss);
  }
  fmt::print("\n");
}

void run() {
  fmt::print("step  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}\n", 0, 50, 100, 150, 200);
  train("AdamW", nn::AdamW({.lr = 0.003}));
  train("Muon", Muon(0.02));
}

int main(int argc, char** argv) {
  return apps::run_main("own_optimizer", "An optimizer of your own, beside AdamW.", argc, argv, run);
}
