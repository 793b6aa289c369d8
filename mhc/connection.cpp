#include <braid/mhc/connection.h>

#include <array>

#include <braid/core/detail/enum_named.h>

namespace braid::mhc {
namespace {

// In the order of ConnectionKind and of Connection::Module.
constexpr std::array<std::string_view, 6> kNames = {"residual", "hc", "mhc", "manifold", "mhc-layer", "skip"};

template <ConnectionKind kind, class M>
constexpr bool kIs = std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(kind), Connection::Module>, M>;
static_assert(kIs<ConnectionKind::residual, ResidualConnection> && kIs<ConnectionKind::hc, HyperConnection> &&
              kIs<ConnectionKind::mhc, ManifoldConstrainedHC> &&
              kIs<ConnectionKind::manifold, ManifoldHyperConnection> && kIs<ConnectionKind::mhc_layer, MHCLayer> &&
              kIs<ConnectionKind::skip, MHCSkip> && std::variant_size_v<Connection::Module> == kNames.size());

Connection::Module make_module(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng) {
  const std::int64_t n = config.streams.value_or(config.kind == ConnectionKind::manifold ? 2 : 4);
  const int iterations = config.sinkhorn_iterations;
  switch (config.kind) {
    case ConnectionKind::residual: break;
    case ConnectionKind::hc:
      return HyperConnection(channels, n, index,
                             {.dynamic = config.dynamic, .path = config.path, .dtype = config.dtype});
    case ConnectionKind::mhc:
      return ManifoldConstrainedHC(channels, n, rng,
                                   {.mixing = config.mixing,
                                    .mixing_settings = {.iterations = iterations},
                                    .phi_std = config.phi_std,
                                    .path = config.path,
                                    .keep_every = config.keep_every,
                                    .dtype = config.dtype});
    case ConnectionKind::manifold:
      return ManifoldHyperConnection(
          channels, rng,
          {.expansion = n, .sinkhorn_iterations = iterations, .path = config.path, .dtype = config.dtype});
    case ConnectionKind::mhc_layer:
      return MHCLayer(n, channels,
                      {.sinkhorn_iterations = iterations,
                       .init = MHCLayerInit::residual,
                       .path = config.path,
                       .dtype = config.dtype});
    case ConnectionKind::skip: {
      MHCSkipSettings skip = config.skip;
      skip.path = config.path;
      skip.dtype = config.dtype;
      return MHCSkip(skip);
    }
  }
  return ResidualConnection();
}

}  // namespace

std::string_view name(ConnectionKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::span<const std::string_view> connection_names() { return kNames; }

ConnectionKind connection_kind(std::string_view name) {
  return braid::detail::enum_named<ConnectionKind>("connection_kind: connection", kNames, name);
}

Connection::Connection(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng)
    : module(make_module(config, channels, index, rng)) {}

Connection::Stream Connection::open(const Var& embedding) const {
  return std::visit([&](const auto& m) -> Stream { return m.open(embedding); }, module);
}

Var Connection::close(const Stream& stream) const {
  return std::visit([&](const auto& m) { return m.close(stream_of(m, stream)); }, module);
}

Var value(const Connection::Stream& stream) {
  if (const auto* streams = std::get_if<Streams>(&stream)) return streams->value();
  if (const auto* history = std::get_if<History>(&stream)) return history->x;
  return std::get<Var>(stream);
}

void Connection::project() {
  if (auto* skip = std::get_if<MHCSkip>(&module)) skip->project();
}

}  // namespace braid::mhc
