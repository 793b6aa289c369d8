// A network whose gradient is wrong, and how gradcheck finds the line at fault.
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

/// The versions of scaled_norm's vjp.
enum class Draft { first, second };

/// `y = g x / sqrt(mean(x^2))` over the rows of x [rows, channels], g [channels].
Var scaled_norm(const Var& x, const Var& g, Draft draft) {
  const Tensor rstd = Tensor(rsqrt(mean(x.value() * x.value(), {-1}, true)));  // [rows, 1]
  const Tensor normalized = Tensor(x.value() * rstd);
  const auto vjp = [=, g = g.value()](const Tensor& dy) {
    Tensor dx = Tensor(dy * g * rstd);
    if (draft == Draft::second)  // x is in the mean as well
      dx = Tensor(dx - normalized * mean(dx * normalized, {-1}, true));
    return std::vector<Tensor>{dx, Tensor(sum(dy * normalized, 0))};
  };
  return record("scaled_norm", Tensor(normalized * g.value()), {x, g}, vjp);
}

/// A feed-forward layer after a norm.
struct FeedForward {
  Var g;  // [channels]
  nn::Linear up, down;
  Draft draft;

  Var operator()(const Var& x) const { return x + down(gelu(up(scaled_norm(x, g, draft)))); }
  void params(auto&& visit) {
    visit("g", g);
    visit("up", up);
    visit("down", down);
  }
};

struct Network {
  std::vector<FeedForward> layers;

  Var operator()(Var x) const {
    for (const FeedForward& layer : layers) x = layer(x);
    return mean(x * x);
  }
  void params(auto&& visit) { visit("layers", layers); }
};

Network make_network(Draft draft, Rng& rng) {
  Network network;
  for (int i = 0; i < 6; ++i)
    network.layers.push_back({ones({8}, DType::f64), nn::Linear(8, 32, rng, {.dtype = DType::f64}),
                              nn::Linear(32, 8, rng, {.dtype = DType::f64}), draft});
  return network;
}

/// The ops of a network on a page, with their times and the one at fault in red.
std::string page(Network network, const Tensor& x, std::optional<std::size_t> wrong) {
  Profile profile;
  Tape tape(&profile);
  std::vector<std::string> names;
  for_each_param(network, [&](const std::string& name, Var& param) {
    names.push_back(name);
    param = tape.watch(param.value());
  });
  profile.start();
  const Var loss = network(x);
  const Drawing drawing = draw(tape);  // before backward(), which forgets the ops
  tape.backward(loss);
  return drawing.html({.names = names, .times = profile.ops(), .wrong = wrong});
}

void run(const std::filesystem::path& picture) {
  for (const Draft draft : {Draft::first, Draft::second}) {
    Rng rng(1);
    const Network network = make_network(draft, rng);
    const Tensor x = randn({4, 8}, rng, DType::f64);
    const GradcheckResult result = gradcheck_module(network, [&](const Network& n) { return n(x); });
    fmt::print("{}\n{}\n\n", draft == Draft::first ? "the first draft" : "the second", result.message);
    if (draft == Draft::first && !picture.empty())
      write_file_atomically(picture, [&](std::ostream& file) { file << page(network, x, result.wrong_op); });
  }
}

int main(int argc, char** argv) {
  return apps::run_main("wrong_gradient", [&] {
    CLI::App app("How gradcheck finds the line at fault in a network whose gradient is wrong.");
    std::string picture;
    app.add_option("--draw", picture, "write the first draft's ops as a page (HTML), the one at fault in red");
    apps::parse_command_line(app, argc, argv);
    if (!picture.empty()) apps::check_output_file("--draw", picture);
    run(picture);
    return 0;
  });
}
