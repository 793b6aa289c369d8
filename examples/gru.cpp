// A loop over time: a GRU reads 200 steps and adds two numbers that are marked among them.
#include <fmt/format.h>

#include <braid/braid.h>

using namespace braid;
constexpr std::int64_t kSteps = 200, kBatch = 32, kHidden = 32;

/// A gated recurrent unit with PyTorch's formulas: x [T, B, in] -> its states at all times [T, B, H]. arXiv:1406.1078.
struct GRU {
  nn::Linear input, state;  // [3 H, in], [3 H, H]: reset, keep, new

  Var operator()(const Var& x) const {
    const Var inputs = input(x);  // for all times in one product
    Var h = zeros({x.size(1), state.weight.size(1)});
    std::vector<Var> states;
    for (std::int64_t t = 0; t < x.size(0); ++t) {
      const auto a = chunk(inputs[t], -1, 3), b = chunk(state(h), -1, 3);
      const Var reset = sigmoid(a[0] + b[0]), keep = sigmoid(a[1] + b[1]), next = tanh(a[2] + reset * b[2]);
      states.push_back(h = next + keep * (h - next));
    }
    return stack(states, 0);
  }
  void params(auto&& visit) {
    visit("input", input);
    visit("state", state);
  }
};

struct Adder {
  GRU gru;
  nn::Linear out;

  Var operator()(const Var& x) const { return out(gru(x)[-1]).squeeze(1); }  // [T, B, 2] -> [B]
  void params(auto&& visit) {
    visit("gru", gru);
    visit("out", out);
  }
};

int main() {
  Rng rng(1);
  Adder model{{{2, 3 * kHidden, rng}, {kHidden, 3 * kHidden, rng}}, {kHidden, 1, rng}};
  // The gates start to keep states for 1 to 200 steps, arXiv:1804.11188.
  const Tensor forget = log(rand({kHidden}, rng) * (kSteps - 1.0) + 1.0), none = zeros({kHidden});
  model.gru.input.bias = concat({none, forget, none}, 0);
  nn::AdamW optimizer({.lr = 0.01});
  const auto step = value_and_grad([](const Adder& m, const Tensor& x, const Tensor& y) { return mse_loss(m(x), y); });
  double recent = 0.17;  // a mean of the latest losses; 1/6 for the answer 1 to everything
  for (int i = 0; i <= 400; ++i) {
    const Tensor numbers = rand({kSteps, kBatch}, rng), at = randint(0, kSteps / 2, {kBatch, 2}, rng);
    const Tensor marks = one_hot(at, kSteps / 2).reshape({kBatch, kSteps}).transpose();  // one in each half
    const auto [loss, grads] = step(model, stack({numbers, marks}, -1), sum(numbers * marks, 0));
    optimizer.step(model, grads);
    recent = 0.95 * recent + 0.05 * loss;
    if (i % 50 == 0) fmt::print("step {:3}  loss {:.4f}\n", i, recent);
  }
  return recent < 0.01 ? 0 : 1;
}
