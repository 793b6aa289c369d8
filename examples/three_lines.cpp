// Hyper-connections in an existing stack: open the streams, connect each layer, close the streams.
#include <vector>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

/// The existing stack: layers of any kind, here MLPs, with `x = x + layer(x)`.
struct Plain {
  std::vector<nn::MLP> layers;

  Var operator()(Var x) const {
    for (const nn::MLP& layer : layers) x = x + layer(x);
    return x;
  }
  void params(auto&& visit) { visit("layers", layers); }
};

/// The same layers with connections of any type around them.
template <class Connection>
struct Connected {
  std::vector<nn::MLP> layers;
  std::vector<Connection> connections;

  Var operator()(const Var& embedding) const {
    auto x = connections.front().open(embedding);                                      // 1. open
    for (std::size_t i = 0; i < layers.size(); ++i) x = connections[i](x, layers[i]);  // 2. connect
    return connections.back().close(x);                                                // 3. close
  }
  void params(auto&& visit) {
    visit("layers", layers);
    visit("connections", connections);
  }
};

void run() {
  Rng rng(1);
  Plain plain;
  Connected<mhc::ManifoldConstrainedHC> connected;
  for (int i = 0; i < 8; ++i) {
    plain.layers.emplace_back(16, 64, rng);
    // To train them, pass mhc::ManifoldConstrainedHCSettings{.phi_std = 0.02} as well.
    connected.connections.emplace_back(16, /*streams=*/4, rng);
  }
  connected.layers = plain.layers;

  // mHC starts as the residual network that it replaces.
  const Tensor x = randn({5, 16}, rng);
  const Tensor difference = abs(connected(x) - plain(x)).value();
  fmt::print("residual: {} parameters, mHC: {} parameters\n", num_params(plain), num_params(connected));
  fmt::print("largest difference of their outputs: {:.1e}\n", reduce_max(difference).item());

  const Connected<nn::Residual> residual{plain.layers, std::vector<nn::Residual>(plain.layers.size())};
  fmt::print("with nn::Residual, the outputs of the residual network: {}\n",
             identical(residual(x).value(), plain(x).value()));
}

int main(int argc, char** argv) {
  return apps::run_main("three_lines", "How to put hyper-connections into an existing stack of layers.", argc, argv,
                        run);
}
