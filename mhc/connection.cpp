#include <braid/mhc/connection.h>

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

namespace braid::mhc {
namespace {

// In the order of ConnectionKind and of Connection::Module.
constexpr std::array<std::string_view, 6> kNames = {"residual", "hc", "mhc", "manifold", "mhc-layer", "skip"};

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
                                   {.sinkhorn_iterations = iterations,
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

Var open_with(const auto& connection, const Var& embedding) { return connection.open(embedding); }
Var open_with(const MHCSkip&, const Var& embedding) { return embedding; }

Var close_with(const auto& connection, const Var& x) { return connection.close(x); }
Var close_with(const MHCSkip&, const Var& x) { return x; }

}  // namespace

std::string_view name(ConnectionKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::span<const std::string_view> connection_names() { return kNames; }

ConnectionKind connection_kind(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  check_value(found != kNames.end(), "connection_kind: connection must be one of {} but is '{}'",
              fmt::join(kNames, ", "), name);
  return static_cast<ConnectionKind>(found - kNames.begin());
}

Connection::Connection(const ConnectionConfig& config, std::int64_t channels, std::int64_t index, Rng& rng)
    : module(make_module(config, channels, index, rng)), detach_history(config.detach_history) {}

Connection::Stream Connection::open(const Var& embedding) const {
  if (const auto* skip = std::get_if<MHCSkip>(&module))
    return {embedding, HistoryBuffer(skip->settings.max_history, detach_history)};
  const Var x = std::visit([&](const auto& m) { return open_with(m, embedding); }, module);
  if (const auto* mhc = std::get_if<ManifoldConstrainedHC>(&module))
    return {{}, {}, FusedStream(x, mhc->settings.keep_every)};
  return {x};
}

Var Connection::close(const Stream& stream) const {
  const Var x = stream.fused ? stream.fused->streams() : stream.x;
  return std::visit([&](const auto& m) { return close_with(m, x); }, module);
}

void Connection::project() {
  if (auto* skip = std::get_if<MHCSkip>(&module)) skip->project();
}

}  // namespace braid::mhc
