// A physics-informed network: solves u'' = f on [0, 1] with given ends by training on the equation alone;
// apps/plots/physics_informed.py draws it.
#include <cmath>
#include <filesystem>
#include <numbers>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

#include "../apps/common/run_folder.h"
#include "../apps/common/run_main.h"

using namespace braid;

constexpr double kPi = std::numbers::pi, kLeft = 0, kRight = 1;

/// n points from 0 to 1, [n, 1].
Tensor points(std::int64_t n) { return (arange(n, DType::f64) / static_cast<double>(n - 1)).value().reshape({n, 1}); }

/// The right-hand side of the equation, and its solution with u(0) = kLeft, u(1) = kRight. Points [N, 1] -> [N, 1].
Var f(const Var& x) { return -kPi * kPi * (sin(kPi * x) + 2 * sin(2 * kPi * x)); }
Var solution(const Var& x) { return x + sin(kPi * x) + 0.5 * sin(2 * kPi * x); }

/// u(x) = a line between the ends, plus x (1 - x) times a network: the ends are right whatever the weights are.
struct Solution {
  nn::Linear in, hidden, out;

  Solution(std::int64_t width, Rng& rng)
      : in(1, width, rng, {.dtype = DType::f64}),
        hidden(width, width, rng, {.dtype = DType::f64}),
        out(width, 1, rng, {.dtype = DType::f64}) {}

  Var operator()(const Var& x) const {
    // 8 x - 4: between 0 and 1 most units of the first layer bend.
    const Var network = out(tanh(hidden(tanh(in(8 * x - 4)))));
    return kLeft + (kRight - kLeft) * x + x * (1 - x) * network;
  }

  void params(auto&& visit) {
    visit("in", in);
    visit("hidden", hidden);
    visit("out", out);
  }
};

/// u'' at every point of x [N, 1]. An element of u(x) depends on its own point alone, so the derivative of a sum over
/// all points has that of each.
Var second_derivative(const Solution& u, const Var& x) {
  const auto slope = grad([&](const Var& x) { return sum(u(x)); });
  return grad([&](const Var& x) { return sum(slope(x)); })(x);
}

Var residual(const Solution& u, const Var& x) { return second_derivative(u, x) - f(x); }

double largest(const Var& x) { return reduce_max(abs(x).value()).item(); }

Solution train(std::int64_t steps, Rng& rng) {
  const Tensor x = points(64);
  Solution u(24, rng);
  nn::Adam optimizer({.beta2 = 0.99});
  const nn::Schedule lr = nn::warmup_cosine({.peak = 0.01, .floor = 1e-5, .warmup = 50, .total = steps});
  const auto step = value_and_grad([](const Solution& u, const Tensor& x) {
    const Var r = residual(u, x);
    return mean(r * r);
  });
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto [loss, grads] = step(u, x);
    optimizer.set_lr(lr(i));
    optimizer.step(u, grads);
    if (i % 1000 == 0 || i == steps - 1) fmt::print("step {:4}  mean squared residual {:.3e}\n", i, loss);
  }
  return u;
}

void run(const std::filesystem::path& out, std::int64_t steps) {
  const HigherOrder scope;  // for gradients inside gradients
  apps::check_results_folder(out);
  Rng rng(1);
  const Solution u = train(steps, rng);
  const Tensor x = points(1001);  // most were not trained on
  const Tensor found = u(x).value(), error = (found - solution(x)).value();
  fmt::print("largest error of u: {:.2e}, of u'': {:.2e}\n", largest(error), largest(residual(u, x)));
  apps::make_results_folder(out);
  save_npz(out / "solution.npz", {{"x", x}, {"u", found}, {"error", error}, {"residual", residual(u, x).value()}});
}

int main(int argc, char** argv) {
  return apps::run_main("physics_informed", [&] {
    CLI::App app("Solves a differential equation with a network; writes the solution and its error.");
    std::string out = "runs/physics_informed";
    std::int64_t steps = 5000;
    app.add_option("--out", out, "results folder")->capture_default_str();
    app.add_option("--steps", steps, "steps of training")->check(CLI::Range(50, 1'000'000))->capture_default_str();
    apps::parse_command_line(app, argc, argv);
    run(out, steps);
    return 0;
  });
}
