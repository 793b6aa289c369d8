#pragma once
#include <utility>

#include <braid/autograd/params.h>
#include <braid/mhc/connections/manifold_hyper_connection.h>

namespace braid::mhc {

/// A layer inside a connection. Parameters: "layer.*" when the layer is a module, "connection.*".
template <class Layer, class Connection>
struct Rewired {
  Layer layer;
  Connection connection;

  /// x is the connection's Stream or a Var.
  auto operator()(const auto& x) const { return connection(x, layer); }

  void params(auto&& visit) {
    if constexpr (WithParams<Layer>) visit("layer", layer);
    visit("connection", connection);
  }
};

/// Puts any callable layer inside a connection: `y = connection(x, layer)`.
///
///     auto block = mhc::rewire(nn::MLP(64, 256, rng), mhc::ManifoldConstrainedHC(64, 4, rng, {.phi_std = 0.02}));
template <class Layer, class Connection>
  requires requires { typename Connection::Stream; }
Rewired<Layer, Connection> rewire(Layer layer, Connection connection) {
  return {std::move(layer), std::move(connection)};
}

/// Puts a layer inside a ManifoldHyperConnection, which keeps the layer's width: x [..., dims] -> [..., dims].
template <class Layer>
Rewired<Layer, ManifoldHyperConnection> rewire(Layer layer, std::int64_t dims, Rng& rng,
                                               const ManifoldHyperConnectionSettings& settings = {}) {
  return {std::move(layer), ManifoldHyperConnection(dims, rng, settings)};
}

}  // namespace braid::mhc
