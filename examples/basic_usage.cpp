// Hyper-connections in four steps: Sinkhorn-Knopp, a module, its two stages around a layer, a transformer block.
#include <cmath>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

void sinkhorn() {
  fmt::print("== 1. Sinkhorn-Knopp: any matrix becomes doubly stochastic\n");
  Rng rng(1);
  const Tensor logits = randn({4, 4}, rng);
  const Tensor p = mhc::sinkhorn_knopp(logits, /*iterations=*/20).value();
  fmt::print("{}\nrow sums    {}\ncolumn sums {}\n\n", p, reduce_sum(p, {-1}), reduce_sum(p, {-2}));
}

void module_and_maps() {
  fmt::print("== 2. A module: 8 channels as 2 groups, mixed by three maps that can be read\n");
  Rng rng(2);
  const mhc::ManifoldHyperConnection connection(8, rng, {.expansion = 2});
  fmt::print("H_res =\n{}\nH_pre  = {}\nH_post = {}\n{}\n", connection.h_res().value(), connection.h_pre().value(),
             connection.h_post().value(), nn::summary(connection));
}

/// A layer and the connection around it, in two stages.
struct Wrapped {
  mhc::ManifoldHyperConnection connection;
  nn::Linear layer;

  Var operator()(const Var& x) const {
    const Var read = connection.pre_scale(x);
    return connection.post_combine(x, layer(read));
  }

  void params(auto&& visit) {
    visit("connection", connection);
    visit("layer", layer);
  }
};

void two_stages() {
  fmt::print("== 3. Two stages around a layer: gradients reach every parameter\n");
  Rng rng(3);
  const Wrapped model{mhc::ManifoldHyperConnection(8, rng), nn::Linear(8, 8, rng)};
  const Tensor x = randn({2, 5, 8}, rng), target = randn({2, 5, 8}, rng);
  const auto step =
      value_and_grad([](const Wrapped& m, const Tensor& x, const Tensor& y) { return mse_loss(m(x), y); });
  const auto [loss, grads] = step(model, x, target);
  fmt::print("loss {:.4f}\n", loss);
  for_each_param(grads, [](const std::string& name, const Var& grad) {
    fmt::print("  |d {:<22}| = {:.2e}\n", name, std::sqrt(sum(grad * grad).item()));
  });
  fmt::print("\n");
}

void transformer_block() {
  fmt::print("== 4. A transformer block: 4 streams of 32 channels, maps of every token (mHC)\n");
  Rng rng(4);
  const std::int64_t channels = 32, streams = 4;
  const auto connection = [&] { return mhc::ManifoldConstrainedHC(channels, streams, rng, {.phi_std = 0.02}); };
  const nn::TransformerBlock<mhc::ManifoldConstrainedHC> block{
      {nn::RMSNorm(channels), nn::MultiHeadAttention(channels, 4, rng), connection()},
      {nn::RMSNorm(channels), nn::MLP(channels, 4 * channels, rng), connection()}};

  const Tensor x = randn({2, 16, channels}, rng);  // [B, T, C]
  const mhc::Telemetry telemetry;                  // of this forward pass
  const Var y = block.mlp.connection.close(block(block.attention.connection.open(x)));
  fmt::print("{}", mhc::table(telemetry.connections()));
  fmt::print("{} -> {}, {} parameters\n", to_string(x.shape()), to_string(y.shape()), num_params(block));
}

void run() {
  sinkhorn();
  module_and_maps();
  two_stages();
  transformer_block();
}

int main(int argc, char** argv) {
  return apps::run_main("basic_usage", "Four demos: Sinkhorn-Knopp, a module, its two stages, a transformer block.",
                        argc, argv, run);
}
