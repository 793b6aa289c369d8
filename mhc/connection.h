#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include <braid/mhc/history/mhc_skip.h>
#include <braid/mhc/hyper_connection.h>
#include <braid/mhc/manifold_constrained_hc.h>
#include <braid/mhc/manifold_hyper_connection.h>
#include <braid/mhc/mhc_layer.h>
#include <braid/mhc/residual_connection.h>

namespace braid::mhc {

enum class ConnectionKind { residual, hc, mhc, manifold, mhc_layer, skip };

/// `residual`, `hc`, `mhc`, `manifold`, `mhc-layer`, `skip`, as on command lines.
std::string_view name(ConnectionKind kind);
/// All names, in this order.
std::span<const std::string_view> connection_names();
/// The kind of that name. Throws ValueError listing the names.
ConnectionKind connection_kind(std::string_view name);

/// Settings that do not concern a kind are ignored by it.
struct ConnectionConfig {
  ConnectionKind kind = ConnectionKind::residual;
  std::optional<std::int64_t> streams = {};  ///< the expansion for manifold, which defaults to 2; else 4
  int sinkhorn_iterations = 20;
  double phi_std = 0;           ///< mhc; see ManifoldConstrainedHC
  bool dynamic = true;          ///< hc
  MHCSkipSettings skip = {};    ///< skip; its dtype is ours
  bool detach_history = false;  ///< skip
  Path path = Path::automatic;  ///< all but residual; see choose_path
  std::int64_t keep_every = 1;  ///< mhc: streams kept for the backward pass; see FusedStream and keep_interval()
  DType dtype = DType::f32;
};

/// Any of the connections, chosen at run time: one switch for `nn::Transformer<mhc::Connection>`.
///
/// x [..., C] on the outside. Streams run between open() and close(): n copies of the embedding, reduced by their mean
/// (hc, mhc, mhc-layer); the channels as they are (residual, manifold); the state and its history (skip).
/// mhc-layer puts the sublayer behind the MHCLayer's RMS norm, initialised like a residual network.
struct Connection {
  struct Stream {
    Var x;                                      // [..., C] or [..., n, C]
    std::optional<HistoryBuffer> history = {};  // skip only
    std::optional<FusedStream> fused = {};      // mhc only, instead of x
  };
  using Module = std::variant<ResidualConnection, HyperConnection, ManifoldConstrainedHC, ManifoldHyperConnection,
                              MHCLayer, MHCSkip>;

  Module module;
  bool detach_history = false;

  /// For sublayer `index` of a network of width `channels`. Throws ValueError as the module's constructor does.
  Connection(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng);

  ConnectionKind kind() const { return static_cast<ConnectionKind>(module.index()); }

  Stream open(const Var& embedding) const;
  Var close(const Stream& stream) const;

  /// `layer` maps [..., C] to [..., C]; anything callable.
  Stream operator()(const Stream& stream, auto&& layer) const {
    return std::visit([&](const auto& m) { return step(m, stream, layer); }, module);
  }

  void params(auto&& visit) {
    std::visit([&](auto& m) { m.params(visit); }, module);
  }

  /// After an optimizer step: see MHCSkip::project.
  void project();

 private:
  static Stream step(const auto& connection, const Stream& stream, auto& layer) {
    return {connection(stream.x, layer)};
  }
  static Stream step(const ManifoldConstrainedHC& connection, Stream stream, auto& layer) {
    connection.step(*stream.fused, layer);
    return stream;
  }
  static Stream step(const MHCSkip& skip, Stream stream, auto& layer) {
    stream.history->append(stream.x);
    stream.x = skip(layer(stream.x), *stream.history);
    return stream;
  }
};

}  // namespace braid::mhc
