#include <braid/mhc/connection.h>

#include <array>

#include <braid/core/detail/enum_named.h>

namespace braid::mhc {
namespace {

// In the order of ConnectionKind and of StreamHead.
constexpr auto kNames = std::to_array<std::string_view>(
    {"residual", "hc", "mhc", "manifold", "mhc-layer", "skip", "deepseek-v4", "hunyuan-v4", "gated", "single-pass",
     "attention-residual", "frac", "layer-scale", "rezero", "laurel"});
constexpr std::array<std::string_view, 7> kHeads = {"own", "mean", "sum", "weighted", "softmax", "gated", "attention"};

std::int64_t streams_of(const ConnectionConfig& config) {
  return config.streams.value_or(default_streams(config.kind));
}

ReleasedSettings released_settings(const ConnectionConfig& config) {
  return {.sinkhorn_iterations = config.sinkhorn_iterations,
          .hc_eps = config.hc_eps,
          .norm_eps = config.norm_eps,
          .fn_std = config.phi_std,
          .scale = config.alpha,
          .keep_every = config.keep_every,
          .dtype = config.dtype};
}

/// Whether open() makes streams [.., n, C].
bool has_streams(const Connection::Module& module) {
  return std::visit([]<class M>(const M&) { return requires(const M& m) { m.streams(); }; }, module);
}

Connection::Module make_module(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng) {
  const std::int64_t n = streams_of(config);
  const int iterations = config.sinkhorn_iterations;
  switch (config.kind) {
    case ConnectionKind::residual: break;
    case ConnectionKind::hc:
      return HyperConnection(channels, n, index, {.dynamic = config.dynamic, .dtype = config.dtype});
    case ConnectionKind::mhc:
      return ManifoldConstrainedHC(channels, n, rng,
                                   {.mixing = config.mixing,
                                    .mixing_settings = {.iterations = iterations},
                                    .phi_std = config.phi_std,
                                    .alpha = config.alpha,
                                    .keep_every = config.keep_every,
                                    .dtype = config.dtype});
    case ConnectionKind::manifold:
      return ManifoldHyperConnection(channels, rng,
                                     {.expansion = n, .sinkhorn_iterations = iterations, .dtype = config.dtype});
    case ConnectionKind::mhc_layer:
      return MHCLayer(n, channels,
                      {.sinkhorn_iterations = iterations, .init = MHCLayerInit::residual, .dtype = config.dtype});
    case ConnectionKind::skip: {
      MHCSkipSettings skip = config.skip;
      skip.dtype = config.dtype;
      return MHCSkip(skip);
    }
    case ConnectionKind::deepseek_v4: return deepseek_v4(channels, n, rng, released_settings(config));
    case ConnectionKind::hunyuan_v4: return hunyuan_v4(channels, n, rng, released_settings(config));
    case ConnectionKind::gated: return GatedResidual(channels, n, rng, {.dtype = config.dtype});
    case ConnectionKind::single_pass: return SinglePassConnection(channels, n, rng, released_settings(config));
    case ConnectionKind::attention_residual:
      return AttentionResidual(channels, index, {.block = config.depth_block, .dtype = config.dtype});
    case ConnectionKind::frac:
      return FracConnection(channels, n, index, rng,
                            {.fractions = config.fractions,
                             .proposals = config.proposals,
                             .constrained = config.constrained,
                             .sinkhorn_iterations = iterations,
                             .theta_std = config.phi_std,
                             .alpha = config.alpha,
                             .dtype = config.dtype});
    case ConnectionKind::layer_scale: return LayerScale(channels, config.scale_init, config.dtype);
    case ConnectionKind::rezero: return LayerScale(1, 0, config.dtype);
    case ConnectionKind::laurel: return LaurelConnection(channels, config.laurel_rank, config.dtype);
  }
  return ResidualConnection();
}

Connection::Head make_head(const ConnectionConfig& config, const Connection::Module& module, std::int64_t channels,
                           std::int64_t index, Rng& rng) {
  if (!has_streams(module)) return {};
  const std::int64_t n = streams_of(config);
  check_value(config.head < StreamHead::weighted || config.sublayers > index,
              "Connection: head {} needs the number of sublayers, but that is {} at sublayer {}",
              kHeads[static_cast<std::size_t>(config.head)], config.sublayers, index);
  if (config.head >= StreamHead::weighted && index + 1 != config.sublayers) return {};
  switch (config.head) {
    case StreamHead::own: return {};
    case StreamHead::mean: return StreamReduction::mean;
    case StreamHead::sum: return StreamReduction::sum;
    case StreamHead::gated: return GatedHead(channels, n, rng, {.dtype = config.dtype});
    case StreamHead::attention: return AttentionPool(channels, config.dtype);
    case StreamHead::weighted:
    case StreamHead::softmax: break;
  }
  const bool softmax = config.head == StreamHead::softmax;
  return WeightedHead(
      channels, n, {.softmax = softmax, .hc_eps = config.hc_eps, .norm_eps = config.norm_eps, .dtype = config.dtype});
}

/// The streams of a kind that has some.
auto& streams_in(auto& stream) {
  auto* single_pass = std::get_if<SinglePassStreams>(&stream);
  return single_pass != nullptr ? single_pass->x : std::get<Streams>(stream);
}

Var reduce(StreamReduction how, const Streams& x) { return reduce_streams(x.value(), how); }
Var reduce(const auto& head, const Streams& x) { return head(x); }
Var reduce(std::monostate, const Streams&) { return {}; }

}  // namespace

std::string_view name(ConnectionKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::span<const std::string_view> connection_names() { return kNames; }

ConnectionKind connection_kind(std::string_view name) {
  return braid::detail::enum_named<ConnectionKind>("connection_kind: connection", kNames, name);
}

std::span<const std::string_view> stream_head_names() { return kHeads; }

std::int64_t default_streams(ConnectionKind kind) {
  return kind == ConnectionKind::frac ? 1 : kind == ConnectionKind::manifold ? 2 : 4;
}

StreamHead stream_head(std::string_view name) {
  return braid::detail::enum_named<StreamHead>("stream_head: head", kHeads, name);
}

Connection::Connection(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng)
    : module(make_module(config, channels, index, rng)),
      head(make_head(config, module, channels, index, rng)),
      kind_(config.kind) {
  if (config.stream_embedding && index == 0 && has_streams(module))
    stream_embedding = zeros({streams_of(config), channels}, config.dtype);
}

Connection::Stream Connection::open(const Var& embedding) const {
  Stream stream = std::visit([&](const auto& m) -> Stream { return m.open(embedding); }, module);
  if (stream_embedding.value().defined()) streams_in(stream).add(stream_embedding);
  return stream;
}

Var Connection::close(const Stream& stream) const {
  return std::visit(
      [&](const auto& m) {
        const auto& mine = stream_of(m, stream);
        if (std::holds_alternative<std::monostate>(head)) return m.close(mine);
        return std::visit([&](const auto& h) { return reduce(h, streams_in(stream)); }, head);
      },
      module);
}

Connection pretrained_connection(const nn::TransformerConfig& config, std::int64_t index) {
  Rng unused;
  if (!config.streams) return {{.dtype = config.parameters()}, config.channels, index, unused};
  const auto& [n, iterations, eps] = *config.streams;
  return {{.kind = ConnectionKind::deepseek_v4,
           .streams = n,
           .sinkhorn_iterations = iterations,
           .head = StreamHead::weighted,
           .sublayers = 2 * config.layers,
           .hc_eps = eps,
           .norm_eps = config.norm_eps,
           .dtype = config.parameters()},
          config.channels,
          index,
          unused};
}

Var value(const Connection::Stream& stream) {
  if (const auto* state = std::get_if<Var>(&stream)) return *state;
  if (const auto* history = std::get_if<History>(&stream)) return history->x;
  if (const auto* depth = std::get_if<DepthSources>(&stream)) return depth->x;
  return streams_in(stream).value();
}

}  // namespace braid::mhc
