#pragma once
#include <optional>
#include <span>
#include <string>
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
  std::string mixing = "sinkhorn";  ///< mhc; see Mixing
  double phi_std = 0;               ///< mhc; see ManifoldConstrainedHC
  bool dynamic = true;              ///< hc
  MHCSkipSettings skip = {};        ///< skip; its path and dtype are ours
  Path path = default_path();       ///< all but residual
  std::int64_t keep_every = 1;      ///< mhc: streams kept for the backward pass; see Streams and keep_interval()
  DType dtype = DType::f32;
};

/// Any of the connections, chosen at run time: one switch for `nn::Transformer<mhc::Connection>`.
///
/// x [..., C] on the outside. mhc-layer puts the sublayer behind the MHCLayer's RMS norm, initialized like a residual
/// network.
struct Connection {
  using Module = std::variant<ResidualConnection, HyperConnection, ManifoldConstrainedHC, ManifoldHyperConnection,
                              MHCLayer, MHCSkip>;
  /// What runs between open() and close(): the channels as they are (residual, manifold), n streams that start as
  /// copies of the embedding and are reduced by their mean (hc, mhc, mhc-layer), or the state and its history (skip).
  using Stream = std::variant<Var, Streams, History>;

  Module module;

  /// For sublayer `index` of a network of width `channels`. Throws ValueError as the module's constructor does.
  Connection(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng);

  ConnectionKind kind() const { return static_cast<ConnectionKind>(module.index()); }

  Stream open(const Var& embedding) const;
  /// `layer` maps [..., C] to [..., C]; anything callable. Throws Error when a connection of another kind made the
  /// stream.
  Stream operator()(const Stream& stream, auto&& layer) const {
    return std::visit([&](const auto& m) -> Stream { return m(stream_of(m, stream), layer); }, module);
  }
  Var close(const Stream& stream) const;

  void params(auto&& visit) {
    std::visit([&](auto& m) { m.params(visit); }, module);
  }

  /// After an optimizer step: see MHCSkip::project.
  void project();

 private:
  template <class M>
  static const typename M::Stream& stream_of(const M&, const Stream& stream) {
    const auto* mine = std::get_if<typename M::Stream>(&stream);
    check<Error>(mine != nullptr, "Connection: the stream was made by a connection of another kind");
    return *mine;
  }
};

/// The states that run between sublayers, without what came before: [..., C] or [..., n, C].
Var value(const Connection::Stream& stream);

}  // namespace braid::mhc
