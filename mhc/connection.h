#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <braid/mhc/connections/attention_pool.h>
#include <braid/mhc/connections/frac_connection.h>
#include <braid/mhc/connections/history/attention_residual.h>
#include <braid/mhc/connections/history/mhc_skip.h>
#include <braid/mhc/connections/hyper_connection.h>
#include <braid/mhc/connections/laurel_connection.h>
#include <braid/mhc/connections/layer_scale.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/mhc/connections/manifold_hyper_connection.h>
#include <braid/mhc/connections/mhc_layer.h>
#include <braid/mhc/connections/released/gated_residual.h>
#include <braid/mhc/connections/released/released_connection.h>
#include <braid/mhc/connections/released/single_pass.h>
#include <braid/mhc/connections/released/weighted_head.h>
#include <braid/mhc/connections/residual_connection.h>
#include <braid/nn/transformer.h>

namespace braid::mhc {

/// Which connection a Connection is.
enum class ConnectionKind {
  residual,            ///< ResidualConnection
  hc,                  ///< HyperConnection
  mhc,                 ///< ManifoldConstrainedHC
  manifold,            ///< ManifoldHyperConnection
  mhc_layer,           ///< MHCLayer
  skip,                ///< MHCSkip
  deepseek_v4,         ///< the ReleasedConnection deepseek_v4()
  hunyuan_v4,          ///< the ReleasedConnection hunyuan_v4()
  gated,               ///< GatedResidual
  single_pass,         ///< SinglePassConnection
  attention_residual,  ///< AttentionResidual
  frac,                ///< FracConnection
  layer_scale,         ///< LayerScale with a factor for each channel
  rezero,              ///< LayerScale with one factor, 0 at the start
  laurel               ///< LaurelConnection
};

/// `residual`, `hc`, `mhc`, `manifold`, `mhc-layer`, `skip`, `deepseek-v4`, `hunyuan-v4`, `gated`, `single-pass`,
/// `attention-residual`, `frac`, `layer-scale`, `rezero`, `laurel`, as on command lines.
std::string_view name(ConnectionKind kind);
/// All names, in this order.
std::span<const std::string_view> connection_names();
/// The kind with this name. Throws ValueError listing the names.
ConnectionKind connection_kind(std::string_view name);
/// The streams of a connection that is not told how many; of manifold, its expansion.
std::int64_t default_streams(ConnectionKind kind);

/// How the streams become one state after the last connection.
enum class StreamHead {
  own,       ///< the connection's close(): the mean, or for single-pass a read by its last H_pre
  mean,      ///< their mean
  sum,       ///< their sum
  weighted,  ///< WeightedHead: DeepSeek-V4, Hunyuan-V4
  softmax,   ///< WeightedHead with weights that sum to 1
  gated,     ///< GatedHead: Qwen4-exp
  attention  ///< AttentionPool
};

/// Their names, as above.
std::span<const std::string_view> stream_head_names();
/// The head with this name. Throws ValueError listing the names.
StreamHead stream_head(std::string_view name);

/// Settings that do not concern a kind are ignored by it.
struct ConnectionConfig {
  ConnectionKind kind = ConnectionKind::residual;
  std::optional<std::int64_t> streams = {};  ///< the expansion for manifold; without it, default_streams()
  int sinkhorn_iterations = 20;              ///< mhc, manifold, mhc-layer, deepseek-v4, single-pass, frac
  std::string mixing = "sinkhorn";           ///< mhc; see Mixing
  double phi_std = 0;                 ///< mhc, deepseek-v4, hunyuan-v4, single-pass, frac; see ManifoldConstrainedHC
  double alpha = 0.01;                ///< the same; see ManifoldConstrainedHC's upcycling
  bool dynamic = true;                ///< hc
  MHCSkipSettings skip = {};          ///< skip; its dtype is the one below
  std::int64_t depth_block = 1;       ///< attention-residual: sublayers that make one source; see its block
  std::int64_t fractions = 4;         ///< frac; see FracConnectionSettings
  std::int64_t proposals = 1;         ///< frac
  bool constrained = false;           ///< frac
  double scale_init = 0.1;            ///< layer-scale: its factors at the start
  std::int64_t laurel_rank = 4;       ///< laurel
  StreamHead head = StreamHead::own;  ///< this and the next two: kinds with streams
  bool stream_embedding = false;      ///< the first connection adds a learned vector to each stream, initially zero
  std::int64_t sublayers = 0;         ///< of the network, whose last connection holds a head with parameters
  std::int64_t keep_every = 1;        ///< kinds with phi_std, not frac: streams kept for backward; see keep_interval()
  double hc_eps = 1e-6;               ///< deepseek-v4, hunyuan-v4, single-pass and the weighted heads
  double norm_eps = 1e-6;             ///< the same
  DType dtype = DType::f32;
};

/// Any of the connections, chosen at run time: one switch for `nn::Transformer<mhc::Connection>`.
///
/// x [..., C] on the outside. mhc-layer puts the sublayer after the MHCLayer's RMS norm, initialized like a residual
/// network.
struct Connection {
  /// The types of connections; deepseek_v4() and hunyuan_v4() share one, and so do layer-scale and rezero.
  using Module = std::variant<ResidualConnection, HyperConnection, ManifoldConstrainedHC, ManifoldHyperConnection,
                              MHCLayer, MHCSkip, ReleasedConnection, GatedResidual, SinglePassConnection,
                              AttentionResidual, FracConnection, LayerScale, LaurelConnection>;
  /// The state between open() and close(): n streams that start as copies of the embedding, the state and earlier ones
  /// for skip and attention-residual, or a Var for kinds with neither.
  using Stream = std::variant<Var, Streams, History, SinglePassStreams, DepthSources>;
  /// A head other than the module's own.
  using Head = std::variant<std::monostate, StreamReduction, WeightedHead, GatedHead, AttentionPool>;

  Module module;
  Head head;
  Var stream_embedding;  ///< [n, C], undefined without

  /// For sublayer `index` of a network of width `channels`. Throws ValueError as the module's constructor does, and
  /// when a head with parameters is asked for without `sublayers`.
  Connection(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng);

  ConnectionKind kind() const { return kind_; }  ///< as configured

  Stream open(const Var& embedding) const;  ///< embedding [..., C]: the state before the first sublayer
  /// `layer` maps [..., C] to [..., C]; anything callable. Throws Error if another kind of connection made the stream.
  Stream operator()(const Stream& stream, auto&& layer) const {
    return std::visit([&](const auto& m) -> Stream { return m(stream_of(m, stream), layer); }, module);
  }
  Var close(const Stream& stream) const;  ///< [..., C]; throws Error when a connection of another kind made the stream

  void params(auto&& visit) {
    std::visit([&](auto& m) { m.params(visit); }, module);
    if (auto* weighted = std::get_if<WeightedHead>(&head)) visit("head", *weighted);
    if (auto* gated = std::get_if<GatedHead>(&head)) visit("head", *gated);
    if (auto* pool = std::get_if<AttentionPool>(&head)) visit("head", *pool);
    if (stream_embedding.value().defined()) visit("stream_embedding", stream_embedding);
  }

  /// After an optimizer step: see MHCSkip::project.
  void project() {
    if (auto* skip = std::get_if<MHCSkip>(&module)) skip->project();
  }

 private:
  template <class M>
  static const typename M::Stream& stream_of(const M&, const Stream& stream) {
    const auto* mine = std::get_if<typename M::Stream>(&stream);
    check<Error>(mine != nullptr, "Connection: the stream was made by a connection of another kind");
    return *mine;
  }

  ConnectionKind kind_;
};

/// The connection of sublayer `index` of a released model, for nn::load_pretrained(): that of DeepSeek-V4, with its
/// head, where the config has streams, else the residual one. Its parameters are to be loaded; as they are, a network
/// starts as ReleasedInit::residual says.
Connection pretrained_connection(const nn::TransformerConfig& config, std::int64_t index);

/// The state between sublayers, [..., C] or [..., n, C], without its history.
Var value(const Connection::Stream& stream);

}  // namespace braid::mhc
