// Separates two spirals: a classifier, a schedule, clipping, saving; apps/plots/two_spirals.py draws its boundary.
#include <cmath>
#include <filesystem>
#include <numbers>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

#include "../apps/common/run_folder.h"
#include "../apps/common/run_main.h"

using namespace braid;

/// Points [2 n, 2] on two arms that wind around each other, and which arm each is on, [2 n, 1].
struct Spirals {
  Tensor points, arms;
};

Spirals spirals(std::int64_t n, Rng& rng) {
  const Var turn = sqrt(rand({n, 1}, rng)) * (3 * std::numbers::pi);
  const Var arm = concat({turn * sin(turn), turn * cos(turn)}, 1) / 10.0;
  return {(concat({arm, -arm}, 0) + randn({2 * n, 2}, rng) * 0.02).value(),
          concat({zeros({n, 1}), ones({n, 1})}, 0).value()};
}

struct Classifier {
  nn::Linear in, hidden, out;

  Classifier(std::int64_t width, Rng& rng) : in(2, width, rng), hidden(width, width, rng), out(width, 1, rng) {}
  Var operator()(const Var& x) const { return out(gelu(hidden(gelu(in(x))))); }  // [N, 2] -> logits [N, 1]

  void params(auto&& visit) {
    visit("in", in);
    visit("hidden", hidden);
    visit("out", out);
  }
};

double accuracy(const Classifier& model, const Spirals& data) {
  const Tensor said = (model(data.points) > 0.0).to(DType::f32);
  return mean((said == data.arms).to(DType::f32)).item();
}

Classifier train(const Spirals& data, Rng& rng) {
  constexpr std::int64_t kSteps = 1500;
  Classifier model(64, rng);
  nn::AdamW optimizer({.weight_decay = 0.01});
  const nn::Schedule lr = nn::warmup_cosine({.peak = 0.01, .floor = 1e-4, .warmup = 50, .total = kSteps});
  const auto step = value_and_grad([](const Classifier& m, const Tensor& x, const Tensor& arms) {
    return binary_cross_entropy_with_logits(m(x), arms);
  });
  for (std::int64_t i = 0; i < kSteps; ++i) {
    auto [loss, grads] = step(model, data.points, data.arms);
    const double norm = nn::clip_grad_norm(grads, 1.0);
    optimizer.set_lr(lr(i));
    optimizer.step(model, grads);
    if (i % 250 == 0 || i == kSteps - 1) fmt::print("step {:4}  loss {:.5f}  gradient {:.4f}\n", i, loss, norm);
  }
  return model;
}

/// The model's probabilities on the square [-1, 1]^2, [n, n], the lowest row first.
Tensor map_of(const Classifier& model, std::int64_t n) {
  const Var axis = arange(n) * (2.0 / static_cast<double>(n - 1)) - 1.0;
  const Var x = broadcast_to(axis, {n, n}), y = transpose(x);
  return reshape(sigmoid(model(reshape(stack({x, y}, -1), {n * n, 2}))), {n, n}).value();
}

void run(const std::filesystem::path& out) {
  apps::check_results_folder(out);
  Rng rng(1);
  const Spirals data = spirals(400, rng), others = spirals(400, rng);
  const Classifier model = train(data, rng);
  fmt::print("right: {:.1f} % of the points, {:.1f} % of others\n", 100 * accuracy(model, data),
             100 * accuracy(model, others));

  apps::make_results_folder(out);
  nn::save_module(out / "model.safetensors", model);
  save_npz(out / "map.npz", {{"map", map_of(model, 300)}, {"points", others.points}, {"arms", others.arms}});
  Classifier loaded(64, rng);
  nn::load_module(out / "model.safetensors", loaded);
  fmt::print("saved and loaded: {}\n", identical(loaded(others.points).value(), model(others.points).value()));
}

int main(int argc, char** argv) {
  return apps::run_main("two_spirals", [&] {
    CLI::App app("Tells two spirals apart; writes the model and a map of its answers.");
    std::string out = "runs/two_spirals";
    app.add_option("--out", out, "results folder")->capture_default_str();
    apps::parse_command_line(app, argc, argv);
    run(out);
    return 0;
  });
}
