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
#include <braid/mhc/released/gated_residual.h>
#include <braid/mhc/released/hunyuan_v4.h>
#include <braid/mhc/released/single_pass.h>
#include <braid/mhc/released/weighted_head.h>
#include <braid/mhc/residual_connection.h>

namespace braid::mhc {

/// Which connection a Connection is: ResidualConnection, HyperConnection, ManifoldConstrainedHC,
/// ManifoldHyperConnection, MHCLayer, MHCSkip, DeepSeekV4Connection, HunyuanV4Connection, GatedResidual,
/// SinglePassConnection.
enum class ConnectionKind { residual, hc, mhc, manifold, mhc_layer, skip, deepseek_v4, hunyuan_v4, gated, single_pass };

/// `residual`, `hc`, `mhc`, `manifold`, `mhc-layer`, `skip`, `deepseek-v4`, `hunyuan-v4`, `gated`, `single-pass`, as on
/// command lines.
std::string_view name(ConnectionKind kind);
/// All names, in this order.
std::span<const std::string_view> connection_names();
/// The kind of that name. Throws ValueError listing the names.
ConnectionKind connection_kind(std::string_view name);

/// How the streams become one state behind the last connection.
enum class StreamHead {
  own,       ///< what the connection's close() does: the mean; single-pass reads by its last H_pre
  mean,      ///< their mean
  sum,       ///< their sum
  weighted,  ///< WeightedHead: DeepSeek-V4, Hunyuan-V4
  softmax,   ///< WeightedHead with weights that sum to 1
  gated,     ///< GatedHead: Qwen4-exp
};

/// Their names, as above.
std::span<const std::string_view> stream_head_names();
/// The head of that name. Throws ValueError listing the names.
StreamHead stream_head(std::string_view name);

/// Settings that do not concern a kind are ignored by it.
struct ConnectionConfig {
  ConnectionKind kind = ConnectionKind::residual;
  std::optional<std::int64_t> streams = {};  ///< the expansion for manifold, which defaults to 2; else 4
  int sinkhorn_iterations = 20;              ///< mhc, manifold, mhc-layer, deepseek-v4, single-pass
  std::string mixing = "sinkhorn";           ///< mhc; see Mixing
  double phi_std = 0;                        ///< mhc, deepseek-v4, hunyuan-v4, single-pass; see ManifoldConstrainedHC
  double alpha = 0.01;                       ///< the same; see ManifoldConstrainedHC's upcycling
  bool dynamic = true;                       ///< hc
  MHCSkipSettings skip = {};                 ///< skip; its path and dtype are ours
  StreamHead head = StreamHead::own;         ///< of kinds with streams, as are the next two
  bool stream_embedding = false;  ///< the first connection adds a learned vector to each stream, zero at the start
  std::int64_t sublayers = 0;     ///< of the network; a head with parameters is part of its last connection
  Path path = default_path();     ///< all but residual
  std::int64_t keep_every = 1;    ///< kinds with phi_std: streams kept for the backward pass; see keep_interval()
  DType dtype = DType::f32;
};

/// Any of the connections, chosen at run time: one switch for `nn::Transformer<mhc::Connection>`.
///
/// x [..., C] on the outside. mhc-layer puts the sublayer behind the MHCLayer's RMS norm, initialized like a residual
/// network.
struct Connection {
  /// One of each, in the order of ConnectionKind.
  using Module =
      std::variant<ResidualConnection, HyperConnection, ManifoldConstrainedHC, ManifoldHyperConnection, MHCLayer,
                   MHCSkip, DeepSeekV4Connection, HunyuanV4Connection, GatedResidual, SinglePassConnection>;
  /// What runs between open() and close(): the channels as they are (residual, manifold), n streams that start as
  /// copies of the embedding, or the state and its history (skip).
  using Stream = std::variant<Var, Streams, History, SinglePassStreams>;
  /// A head that is not the module's own.
  using Head = std::variant<std::monostate, StreamReduction, WeightedHead, GatedHead>;

  Module module;
  Head head;
  Var stream_embedding;  ///< [n, C], undefined without

  /// For sublayer `index` of a network of width `channels`. Throws ValueError as the module's constructor does, and
  /// when a head with parameters is asked for without `sublayers`.
  Connection(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng);

  /// Told by the module.
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
    if (auto* weighted = std::get_if<WeightedHead>(&head)) visit("head", *weighted);
    if (auto* gated = std::get_if<GatedHead>(&head)) visit("head", *gated);
    if (stream_embedding.value().defined()) visit("stream_embedding", stream_embedding);
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
