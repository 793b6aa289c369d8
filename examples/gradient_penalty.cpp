// A loss that contains a gradient: a critic measures the distance of two clouds of points, with a penalty on the slope
// of its own output, as in WGAN-GP (arXiv:1704.00028), and without; apps/plots/gradient_penalty.py draws both.
#include <cmath>
#include <filesystem>
#include <numbers>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

#include "../apps/common/run_folder.h"
#include "../apps/common/run_main.h"

using namespace braid;

constexpr double kShiftX = 1.2, kShiftY = 0.9;  // of 1.5 in all

/// n points on a noisy ring around the origin, [n, 2].
Tensor ring(std::int64_t n, Rng& rng) {
  const Var angle = rand({n, 1}, rng) * (2 * std::numbers::pi);
  return (concat({cos(angle), sin(angle)}, 1) + randn({n, 2}, rng) * 0.1).value();
}

/// The same, moved: the Wasserstein distance of the two, how far points must move on average to turn one into the
/// other, is the length of the shift.
Tensor moved_ring(std::int64_t n, Rng& rng) {
  return (ring(n, rng) + Tensor::of<float>({2}, {kShiftX, kShiftY})).value();
}

struct Critic {
  nn::Linear in, hidden, out;

  Critic(std::int64_t width, Rng& rng) : in(2, width, rng), hidden(width, width, rng), out(width, 1, rng) {}
  Var operator()(const Var& x) const { return out(silu(hidden(silu(in(x))))); }  // [N, 2] -> [N, 1]

  void params(auto&& visit) {
    visit("in", in);
    visit("hidden", hidden);
    visit("out", out);
  }
};

/// The length of the critic's gradient at each point: [N, 2] -> [N].
Var slope(const Critic& critic, const Tensor& points) {
  return norm(grad([&](const Var& x) { return sum(critic(x)); })(points), {-1});
}

/// How much higher the critic values the points of `b` than those of `a`. The highest value that a critic can reach
/// whose slope is at most 1 is their Wasserstein distance.
Var separation(const Critic& critic, const Tensor& a, const Tensor& b) { return mean(critic(b)) - mean(critic(a)); }

/// Points at random places on the lines between those of a and b.
Tensor between(const Tensor& a, const Tensor& b, Rng& rng) {
  const Tensor t = rand({a.size(0), 1}, rng);
  return (a + t * (b - a)).value();
}

Critic train(double penalty, std::int64_t steps, Rng rng) {
  const HigherOrder scope;  // the loss contains a gradient
  Critic critic(64, rng);
  nn::Adam optimizer({.beta1 = 0.5, .beta2 = 0.9});
  const nn::Schedule lr = nn::warmup_cosine({.peak = 2e-3, .total = steps});
  const auto step = value_and_grad([&](const Critic& c, const Tensor& a, const Tensor& b, const Tensor& mixed) {
    const Var excess = slope(c, mixed) - 1.0;
    return penalty * mean(excess * excess) - separation(c, a, b);
  });
  for (std::int64_t i = 0; i < steps; ++i) {
    const Tensor a = ring(256, rng), b = moved_ring(256, rng);
    const auto [loss, grads] = step(critic, a, b, between(a, b, rng));
    optimizer.set_lr(lr(i));
    optimizer.step(critic, grads);
  }
  return critic;
}

/// The critic's values on the square [-2, 3]^2, [n, n], the lowest row first.
Tensor map_of(const Critic& critic, std::int64_t n) {
  const Var axis = arange(n) * (5.0 / static_cast<double>(n - 1)) - 2.0;
  const Var x = broadcast_to(axis, {n, n}), y = transpose(x);
  return reshape(critic(reshape(stack({x, y}, -1), {n * n, 2})), {n, n}).value();
}

void run(const std::filesystem::path& out, std::int64_t steps) {
  apps::check_results_folder(out);
  Rng rng(1);
  const Tensor a = ring(2000, rng), b = moved_ring(2000, rng), mixed = between(a, b, rng);  // not trained on
  const Critic penalized = train(10, steps, Rng(2)), free = train(0, steps, Rng(2));
  fmt::print("exact distance {:.3f}\n", std::hypot(kShiftX, kShiftY));
  for (const auto& [name, critic] : {std::pair("with the penalty", &penalized), std::pair("without", &free)}) {
    const Tensor slopes = slope(*critic, mixed).value();
    fmt::print("{:16}  distance {:9.3f}, slopes from {:.3f} to {:.3f}, {:.3f} on average\n", name,
               separation(*critic, a, b).item(), reduce_min(slopes).item(), reduce_max(slopes).item(),
               mean(slopes).item());
  }
  apps::make_results_folder(out);
  save_npz(out / "critics.npz", {{"a", a},
                                 {"b", b},
                                 {"penalized", map_of(penalized, 200)},
                                 {"free", map_of(free, 200)},
                                 {"penalized_slopes", slope(penalized, mixed).value()},
                                 {"free_slopes", slope(free, mixed).value()}});
}

int main(int argc, char** argv) {
  return apps::run_main("gradient_penalty", [&] {
    CLI::App app("Measures the distance of two clouds of points with a critic, with and without a gradient penalty.");
    std::string out = "runs/gradient_penalty";
    std::int64_t steps = 1000;
    app.add_option("--out", out, "results folder")->capture_default_str();
    app.add_option("--steps", steps, "steps of training")->check(CLI::Range(1, 1'000'000))->capture_default_str();
    apps::parse_command_line(app, argc, argv);
    run(out, steps);
    return 0;
  });
}
