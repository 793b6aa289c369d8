#include <braid/mhc/connections/released/released_connection.h>

#include <utility>

namespace braid::mhc {

ReleasedConnection::ReleasedConnection(const char* op, CheckpointMaps maps_in, std::int64_t channels, Rng& rng,
                                       const ReleasedSettings& s)
    : maps(std::move(maps_in)), channels(channels), settings(s) {
  check_value(s.keep_every >= 1, "{}: keep_every must be >= 1 but is {}", op, s.keep_every);
  maps.initialize(op, channels, s.init, s.fn_std, s.scale, rng, s.dtype);
}

Var ReleasedConnection::read(Streams& x) const {
  check_streams("ReleasedConnection", x.shape(), streams(), channels);
  return x.read(maps.maps());
}

ReleasedConnection deepseek_v4(std::int64_t channels, std::int64_t streams, Rng& rng, const ReleasedSettings& s) {
  const CheckpointMaps maps{
      .mixing = Mixing("sinkhorn", streams, {.iterations = s.sinkhorn_iterations, .eps = s.hc_eps}),
      .norm_eps = s.norm_eps,
      .pre_eps = s.hc_eps,
      .post_magnitude = s.post_magnitude};
  return {"deepseek_v4", maps, channels, rng, s};
}

ReleasedConnection hunyuan_v4(std::int64_t channels, std::int64_t streams, Rng& rng, const ReleasedSettings& s) {
  const CheckpointMaps maps{.mixing = Mixing("identity", streams),
                            .norm_eps = s.norm_eps,
                            .pre_eps = s.hc_eps,
                            .post_eps = s.hc_eps,
                            .post_magnitude = s.post_magnitude};
  return {"hunyuan_v4", maps, channels, rng, s};
}

}  // namespace braid::mhc
